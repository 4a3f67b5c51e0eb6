/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters (fi_cntr(3)): a value and an error value that completed operations advance, and waits for them. */
#include "completion/counter.h"

#include <stdlib.h>

#include "base/check.h"
#include "object/domain.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"
#include "progress/sleeper.h"
#include "progress/wait.h"

int ofpi_counter_enter(struct ofp_counter *counter)
{
    int result = ofpi_domain_enter(counter->domain);

    if (!result && counter->closing) {
        ofpi_domain_leave(counter->domain);
        result = -ECANCELED;
    }
    return result;
}

int ofp_counter_open(struct ofp_domain *handle, const struct ofp_counter_attr *attr, struct ofp_counter **result)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofp_counter *counter;
    int error;

    if (attr->events != OFP_COUNTER_COMPLETIONS && attr->events != OFP_COUNTER_BYTES)
        return -EINVAL;
    counter = calloc(1, sizeof(*counter));
    if (!counter)
        return -ENOMEM;
    error = ofpi_domain_enter(domain);
    if (error) {
        free(counter);
        return error;
    }
    counter->domain = domain;
    counter->events = attr->events;
    ofp_list_init(&counter->thresholds);
    ofpi_sleeper_init(&counter->sleeper);
    ofp_list_append(&domain->counters, &counter->node);
    ofpi_domain_leave(domain);
    *result = counter;
    return 0;
}

int ofp_counter_retire(struct ofp_counter *counter)
{
    struct ofpi_domain *domain = counter->domain;
    int result = ofpi_counter_enter(counter);

    if (result)
        return result;
    if (counter->uses) {
        ofpi_domain_leave(domain);
        return -EBUSY;
    }
    counter->closing = true;
    domain->upper->counter_closes(counter);
    ofpi_regions_remove_counter(&domain->regions, counter);
    ofpi_wait_for_leavers(domain, &counter->waiting);
    ofpi_sleeper_close(domain, &counter->sleeper);
    ofp_list_remove(&counter->node);
    ofpi_domain_leave(domain);
    return 0;
}

void ofp_counter_free(struct ofp_counter *counter)
{
    /*
     * Separate from ofp_counter_retire: threads that have entered a call, and wait for the lock, still read `closing`.
     */
    if (counter->closing)
        free(counter);
}

int ofp_counter_close(struct ofp_counter *counter)
{
    int result = ofp_counter_retire(counter);

    if (!result)
        ofp_counter_free(counter);
    return result;
}

/* -------------------------------------------------------------------------------------------------------- counting */

static void move_reached_thresholds(struct ofp_counter *counter)
{
    while (!ofp_list_empty(&counter->thresholds)) {
        struct ofpi_threshold *first = OFP_CONTAINER_OF(counter->thresholds.next, struct ofpi_threshold, node);

        OFPI_CHECK(first->counter == counter);
        if (first->value > counter->value)
            return;
        ofp_list_remove(&first->node);
        first->counter = NULL;
        /* Do not start the deferred work here: counters change within callbacks of providers, which must not post. */
        ofp_list_append(&counter->domain->due, &first->node);
    }
}

void ofpi_counter_add_threshold(struct ofp_counter *counter, struct ofpi_threshold *threshold, uint64_t value)
{
    struct ofp_list *position = counter->thresholds.previous;

    /* Search from the end: programs usually add rising values. Insert behind equal values. */
    while (position != &counter->thresholds && OFP_CONTAINER_OF(position, struct ofpi_threshold, node)->value > value)
        position = position->previous;
    threshold->counter = counter;
    threshold->value = value;
    ofp_list_insert_after(position, &threshold->node);
    move_reached_thresholds(counter);
}

static void notify_counter_waiters(struct ofp_counter *counter)
{
    if (counter->waiting)
        ofpi_domain_wake(counter->domain);
    /* The user of the descriptor waits for one value: do not wake the user for a smaller one. */
    if (counter->sleeper.armed && (counter->value >= counter->awaited || counter->errors != counter->known_errors))
        ofpi_sleeper_wake(counter->domain, &counter->sleeper);
}

void ofpi_counter_set_value(struct ofp_counter *counter, uint64_t value)
{
    counter->value = value;
    if (!ofp_list_empty(&counter->thresholds))
        move_reached_thresholds(counter);
    notify_counter_waiters(counter);
}

static void set_counter_errors(struct ofp_counter *counter, uint64_t errors)
{
    counter->errors = errors;
    notify_counter_waiters(counter);
}

void ofpi_counter_count(struct ofp_counter *counter, uint64_t length, int error)
{
    if (error)
        set_counter_errors(counter, counter->errors + 1);
    else
        ofpi_counter_set_value(counter, counter->value + (counter->events == OFP_COUNTER_BYTES ? length : 1));
}

void ofpi_endpoint_count(struct ofpi_endpoint *endpoint, uint64_t completion_flags, uint64_t length, int error)
{
    static const struct {
        uint64_t flag;
        enum ofp_counter_class class;
    } classes[] = {
        {OFP_COMPLETED_REMOTE_READ, OFP_COUNTER_REMOTE_READ},
        {OFP_COMPLETED_REMOTE_WRITE, OFP_COUNTER_REMOTE_WRITE},
        {OFP_COMPLETED_SEND, OFP_COUNTER_SEND},
        {OFP_COMPLETED_RECV, OFP_COUNTER_RECV},
        {OFP_COMPLETED_READ, OFP_COUNTER_READ},
        {OFP_COMPLETED_WRITE, OFP_COUNTER_WRITE},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (!(completion_flags & classes[i].flag))
            continue;
        if (endpoint->counters[classes[i].class])
            ofpi_counter_count(endpoint->counters[classes[i].class], length, error);
        return;
    }
}

/* --------------------------------------------------------------------------------------------------------- binding */

bool ofpi_counter_is_usable(const struct ofpi_domain *domain, const struct ofp_counter *counter)
{
    return counter && counter->domain == domain && !counter->closing;
}

int ofpi_counters_check(const struct ofpi_domain *domain, struct ofp_counter *const *counters)
{
    for (int i = 0; i < OFP_COUNTER_CLASSES; i++)
        if (counters[i] && !ofpi_counter_is_usable(domain, counters[i]))
            return -EINVAL;
    return 0;
}

void ofpi_counters_bind(struct ofpi_endpoint *endpoint, struct ofp_counter *const *counters)
{
    for (int i = 0; i < OFP_COUNTER_CLASSES; i++) {
        endpoint->counters[i] = counters[i];
        if (counters[i]) {
            endpoint->counted = true;
            counters[i]->uses++;
        }
    }
}

void ofpi_counters_unbind(struct ofpi_endpoint *endpoint)
{
    endpoint->counted = false;
    for (int i = 0; i < OFP_COUNTER_CLASSES; i++)
        if (endpoint->counters[i])
            endpoint->counters[i]->uses--;
}

/* ------------------------------------------------------------------------------------------------ reading, changing */

static int read_counter_field(struct ofp_counter *counter, const uint64_t *field, uint64_t *value)
{
    int result = ofpi_counter_enter(counter);

    if (result)
        return result;
    ofpi_sleeper_disarm_own(counter->domain, &counter->sleeper);
    /* A program may poll only this counter, so each read makes progress. */
    ofpi_domain_progress(counter->domain, false);
    *value = *field;
    ofpi_domain_leave(counter->domain);
    return 0;
}

int ofp_counter_read(struct ofp_counter *counter, uint64_t *value)
{
    return read_counter_field(counter, &counter->value, value);
}

int ofp_counter_read_error(struct ofp_counter *counter, uint64_t *errors)
{
    return read_counter_field(counter, &counter->errors, errors);
}

static int update_counter_field(struct ofp_counter *counter, void (*change)(struct ofp_counter *, uint64_t),
                                const uint64_t *relative_to, uint64_t value)
{
    int result = ofpi_counter_enter(counter);

    if (result)
        return result;
    change(counter, (relative_to ? *relative_to : 0) + value);
    ofpi_domain_leave(counter->domain);
    return 0;
}

int ofp_counter_add(struct ofp_counter *counter, uint64_t value)
{
    return update_counter_field(counter, ofpi_counter_set_value, &counter->value, value);
}

int ofp_counter_set(struct ofp_counter *counter, uint64_t value)
{
    return update_counter_field(counter, ofpi_counter_set_value, NULL, value);
}

int ofp_counter_add_error(struct ofp_counter *counter, uint64_t value)
{
    return update_counter_field(counter, set_counter_errors, &counter->errors, value);
}

int ofp_counter_set_error(struct ofp_counter *counter, uint64_t value)
{
    return update_counter_field(counter, set_counter_errors, NULL, value);
}

/* --------------------------------------------------------------------------------------------------------- waiting */

struct counter_condition {
    const struct ofp_counter *counter;
    uint64_t threshold, errors;
};

static bool is_counter_wait_over(const void *argument)
{
    const struct counter_condition *condition = argument;

    return condition->counter->value >= condition->threshold || condition->counter->errors != condition->errors ||
           condition->counter->closing;
}

int ofp_counter_wait(struct ofp_counter *counter, uint64_t threshold, uint64_t errors, int64_t timeout, bool *expired)
{
    struct counter_condition condition = {counter, threshold, errors};
    struct ofpi_domain *domain = counter->domain;
    int result = ofpi_counter_enter(counter);

    *expired = false;
    if (result)
        return result;
    counter->waiting++;
    result = ofpi_domain_wait(domain, is_counter_wait_over, &condition, timeout, expired);
    counter->waiting--;
    if (result > 0 && counter->closing)
        result = -ECANCELED;
    else if (result > 0 && counter->value < threshold)
        result = 2;
    ofpi_domain_leave(domain);
    return result;
}

int ofp_counter_fileno(struct ofp_counter *counter)
{
    int result = ofpi_counter_enter(counter);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(counter->domain, &counter->sleeper);
    ofpi_domain_leave(counter->domain);
    return result;
}

int ofp_counter_arm(struct ofp_counter *counter, uint64_t threshold, uint64_t errors)
{
    struct counter_condition condition = {counter, threshold, errors};
    int result = ofpi_counter_enter(counter);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(counter->domain, &counter->sleeper);
    if (result >= 0) {
        counter->awaited = threshold;
        counter->known_errors = errors;
        result = ofpi_sleeper_arm(counter->domain, &counter->sleeper, is_counter_wait_over, &condition);
    }
    ofpi_domain_leave(counter->domain);
    return result;
}
