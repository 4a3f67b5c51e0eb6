/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues (fi_eq(3)): events about peers and devices, and events that the program writes. Only the program's
 * events are limited by `size`. The core's events exceed it, since none may be lost.
 */
#include "completion/event_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "object/domain.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"
#include "progress/sleeper.h"
#include "progress/wait.h"

#define DEFAULT_SIZE 1024

struct entry {
    struct ofp_list node;
    struct ofp_event event;
    char data[]; /* event.data_length bytes */
};

static int enter_event_queue(struct ofp_eq *eq)
{
    int result = ofpi_domain_enter(eq->domain);

    if (!result && eq->closing) {
        ofpi_domain_leave(eq->domain);
        result = -ECANCELED;
    }
    return result;
}

int ofp_eq_open(struct ofp_domain *handle, const struct ofp_eq_attr *attr, struct ofp_eq **result)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofp_eq *eq;
    int error;

    if (attr->size > OFP_COUNT_MAX)
        return -EINVAL;
    eq = calloc(1, sizeof(*eq));
    error = eq ? ofpi_domain_enter(domain) : -ENOMEM;
    if (error) {
        free(eq);
        return error;
    }
    eq->domain = domain;
    eq->size = attr->size ? attr->size : DEFAULT_SIZE;
    ofp_list_init(&eq->entries);
    ofpi_sleeper_init(&eq->sleeper);
    ofp_list_append(&domain->event_queues, &eq->node);
    ofpi_domain_leave(domain);
    *result = eq;
    return 0;
}

int ofp_eq_retire(struct ofp_eq *eq)
{
    struct ofpi_domain *domain = eq->domain;
    struct ofp_list *node;
    int result = enter_event_queue(eq);

    if (result)
        return result;
    if (eq->uses) {
        ofpi_domain_leave(domain);
        return -EBUSY;
    }
    eq->closing = true;
    ofpi_wait_for_leavers(domain, &eq->waiting);
    ofpi_sleeper_close(domain, &eq->sleeper);
    ofp_list_remove(&eq->node);
    while ((node = ofp_list_pop(&eq->entries)))
        free(OFP_CONTAINER_OF(node, struct entry, node));
    ofpi_domain_leave(domain);
    return 0;
}

void ofp_eq_free(struct ofp_eq *eq)
{
    if (eq->closing)
        free(eq);
}

int ofp_eq_close(struct ofp_eq *eq)
{
    int result = ofp_eq_retire(eq);

    if (!result)
        ofp_eq_free(eq);
    return result;
}

/* --------------------------------------------------------------------------------------------------------- writing */

int ofpi_eq_write(struct ofp_eq *eq, const struct ofp_event *event, const void *data)
{
    struct entry *entry = malloc(sizeof(*entry) + event->data_length);

    OFPI_CHECK(ofpi_domain_is_held(eq->domain) && !eq->closing);
    if (!entry)
        return -ENOMEM;
    entry->event = *event;
    if (data && event->data_length)
        memcpy(entry->data, data, event->data_length);
    ofp_list_append(&eq->entries, &entry->node);
    eq->count++;
    if (eq->sleeper.armed)
        ofpi_sleeper_wake(eq->domain, &eq->sleeper);
    if (eq->waiting)
        ofpi_domain_wake(eq->domain);
    return 0;
}

void ofpi_eq_report_peer(struct ofp_eq *eq, const struct ofp_peer *peer, uint32_t kind, uint32_t incarnation, int error,
                         int provider_error)
{
    struct ofp_event event = {.kind = kind,
                              .endpoint = peer->endpoint->id,
                              .peer = peer->index,
                              .handle = incarnation,
                              .error = error,
                              .provider_error = provider_error};

    if (ofpi_eq_write(eq, &event, NULL) != 0)
        ofpi_log_write(OFP_LOG_ERROR, "core", "event queue: out of memory, an event of peer %u is lost", peer->index);
}

void ofpi_eq_report_device(struct ofpi_domain *domain, int error, const char *text)
{
    struct ofp_event event = {.kind = OFP_EVENT_DEVICE, .peer = OFP_PEER_UNKNOWN, .error = error};
    size_t length = strlen(text);
    struct ofp_list *node, *following;

    event.data_length = length < OFP_EVENT_DATA_MAX ? (uint32_t)length : OFP_EVENT_DATA_MAX;
    OFP_LIST_EACH(node, following, &domain->event_queues) {
        if (ofpi_eq_write(OFP_CONTAINER_OF(node, struct ofp_eq, node), &event, text) != 0)
            ofpi_log_write(OFP_LOG_ERROR, "core", "event queue: out of memory, an event of the device is lost");
    }
}

int ofp_eq_write(struct ofp_eq *eq, const struct ofp_event *event, const void *data)
{
    int result;

    if (event->data_length > OFP_EVENT_DATA_MAX)
        return -EMSGSIZE;
    result = enter_event_queue(eq);
    if (result)
        return result;
    result = eq->count < eq->size ? ofpi_eq_write(eq, event, data) : -EAGAIN;
    ofpi_domain_leave(eq->domain);
    return result;
}

/* --------------------------------------------------------------------------------------------------------- reading */

static int read_first_event(struct ofp_eq *eq, struct ofp_event *event, void *data, bool take)
{
    struct entry *entry;

    if (!eq->count)
        return 0;
    entry = OFP_CONTAINER_OF(eq->entries.next, struct entry, node);
    *event = entry->event;
    memcpy(data, entry->data, event->data_length);
    if (take) {
        ofp_list_remove(&entry->node);
        free(entry);
        eq->count--;
    }
    return 1;
}

static int poll_event_queue(struct ofp_eq *eq, struct ofp_event *event, void *data, bool take)
{
    int result = enter_event_queue(eq);

    if (result)
        return result;
    ofpi_sleeper_disarm_own(eq->domain, &eq->sleeper);
    if (!eq->count)
        ofpi_domain_progress(eq->domain, true);
    result = read_first_event(eq, event, data, take);
    ofpi_domain_leave(eq->domain);
    return result;
}

int ofp_eq_read(struct ofp_eq *eq, struct ofp_event *event, void *data)
{
    return poll_event_queue(eq, event, data, true);
}

int ofp_eq_peek(struct ofp_eq *eq, struct ofp_event *event, void *data)
{
    return poll_event_queue(eq, event, data, false);
}

static bool has_events(const void *argument)
{
    const struct ofp_eq *eq = argument;

    return eq->count || eq->closing;
}

/* The lock is held. 1: there is an event. */
static int wait_for_event(struct ofp_eq *eq, int64_t timeout, bool *expired)
{
    int result;

    eq->waiting++;
    result = ofpi_domain_wait(eq->domain, has_events, eq, timeout, expired);
    eq->waiting--;
    return result > 0 && eq->closing ? -ECANCELED : result;
}

int ofp_eq_wait(struct ofp_eq *eq, struct ofp_event *event, void *data, int64_t timeout, bool *expired)
{
    struct ofpi_domain *domain = eq->domain;
    int result = enter_event_queue(eq);

    *expired = false;
    if (result)
        return result;
    ofpi_sleeper_disarm_own(domain, &eq->sleeper);
    result = wait_for_event(eq, timeout, expired);
    if (result > 0)
        result = read_first_event(eq, event, data, true);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_eq_await(struct ofp_eq *eq, int64_t timeout, bool *expired)
{
    struct ofpi_domain *domain = eq->domain;
    int result = enter_event_queue(eq);

    *expired = false;
    if (result)
        return result;
    ofpi_sleeper_disarm_own(domain, &eq->sleeper);
    result = wait_for_event(eq, timeout, expired);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_eq_fileno(struct ofp_eq *eq)
{
    int result = enter_event_queue(eq);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(eq->domain, &eq->sleeper);
    ofpi_domain_leave(eq->domain);
    return result;
}

int ofp_eq_arm(struct ofp_eq *eq)
{
    int result = enter_event_queue(eq);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(eq->domain, &eq->sleeper);
    if (result >= 0)
        result = ofpi_sleeper_arm(eq->domain, &eq->sleeper, has_events, eq);
    ofpi_domain_leave(eq->domain);
    return result;
}
