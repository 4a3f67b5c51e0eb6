/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues. The ring is the fast path. When it is full, completions are appended to the list `spill`, so an
 * overrun loses nothing: each operation has a reserved list entry (entries.h). To preserve the order, new completions
 * are appended to the list as long as it is not empty, and readers empty the ring before the list.
 */
#include "completion/completion_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/param.h"
#include "completion/entries.h"
#include "completion/request_slots.h"
#include "object/domain.h"
#include "ofipy/ofp.h"
#include "ofipy/request.h"
#include "progress/progress.h"
#include "progress/sleeper.h"
#include "progress/wait.h"

int ofp_cq_open(struct ofp_domain *handle, const struct ofp_cq_attr *attr, struct ofp_cq **result)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    uint64_t wanted = attr->size ? attr->size : ofpi_param_get_size("CQ_SIZE");
    struct ofp_cq *cq;
    int error;

    if (wanted > OFP_COUNT_MAX)
        return -EINVAL;
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return -ENOMEM;
    cq->size = 16;
    while (cq->size < wanted)
        cq->size *= 2;
    cq->ring = malloc(cq->size * sizeof(*cq->ring));
    error = cq->ring ? ofpi_domain_enter(domain) : -ENOMEM;
    if (!error && !ofpi_reserve_acquire(&domain->entries, 1)) {
        ofpi_domain_leave(domain);
        error = -ENOMEM;
    }
    if (error) {
        free(cq->ring);
        free(cq);
        return error;
    }
    cq->domain = domain;
    ofpi_sleeper_init(&cq->sleeper);
    ofp_list_init(&cq->spill);
    ofp_list_init(&cq->finished);
    ofp_list_append(&domain->queues, &cq->node);
    ofpi_domain_leave(domain);
    *result = cq;
    return 0;
}

int ofp_cq_retire(struct ofp_cq *cq)
{
    struct ofpi_domain *domain = cq->domain;
    struct ofp_list *node;
    int result = ofpi_cq_enter(cq);

    if (result)
        return result;
    if (cq->uses) {
        ofpi_domain_leave(domain);
        return -EBUSY;
    }
    cq->closing = true;
    /* The waiters' conditions read members that are freed below: let the waiters leave first. */
    ofpi_wait_for_leavers(domain, &cq->waiting);
    ofpi_sleeper_close(domain, &cq->sleeper);
    ofp_list_remove(&cq->node);
    /* Only unlink the requests: they belong to the domain. */
    while (ofp_list_pop(&cq->finished))
        ;
    while ((node = ofp_list_pop(&cq->spill)))
        ofpi_reserve_free(&domain->entries, OFP_CONTAINER_OF(node, struct ofpi_entry, node));
    ofpi_reserve_release(&domain->entries, 1);
    free(cq->ring);
    ofpi_domain_leave(domain);
    return 0;
}

void ofp_cq_free(struct ofp_cq *cq)
{
    /* Separate from ofp_cq_retire: threads that have entered a call, and wait for the lock, still read `closing`. */
    if (cq->closing)
        free(cq);
}

int ofp_cq_close(struct ofp_cq *cq)
{
    int result = ofp_cq_retire(cq);

    if (!result)
        ofp_cq_free(cq);
    return result;
}

/* ------------------------------------------------------------------------------------------------ write and read */

static struct ofpi_entry *store_spilled_completion(struct ofp_cq *cq, const struct ofp_completion *completion)
{
    struct ofpi_entry *entry = ofpi_entry_store(cq->domain, completion);

    if (!entry)
        return NULL;
    ofp_list_append(&cq->spill, &entry->node);
    cq->spilled++;
    return entry;
}

void ofpi_cq_push(struct ofp_cq *cq, const struct ofp_completion *completion)
{
    OFPI_CHECK(ofpi_domain_is_held(cq->domain) && !cq->closing && cq->count <= cq->size);
    if (__builtin_expect(cq->count == cq->size || cq->spilled, 0)) {
        store_spilled_completion(cq, completion);
    } else {
        cq->ring[(cq->head + cq->count) & (cq->size - 1)] = *completion;
        cq->count++;
    }
    ofpi_cq_notify(cq);
}

void ofpi_cq_push_unreserved(struct ofp_cq *cq, const struct ofp_completion *completion)
{
    struct ofp_completion overflow = {
        .flags = completion->flags, .source = OFP_PEER_UNKNOWN, .endpoint = completion->endpoint, .error = ENOBUFS};

    if ((cq->count < cq->size && !cq->spilled) || ofpi_reserve_grow(&cq->domain->entries)) {
        ofpi_cq_push(cq, completion);
        return;
    }
    /* Count each further lost completion in the entry of the first one, until that entry is read. */
    if (!cq->overflow) {
        cq->overflow = store_spilled_completion(cq, &overflow);
        ofpi_cq_notify(cq);
    }
    if (cq->overflow)
        cq->overflow->completion.length++;
}

void ofpi_cq_notify(struct ofp_cq *cq)
{
    if (__builtin_expect(cq->sleeper.armed, 0))
        ofpi_sleeper_wake(cq->domain, &cq->sleeper);
}

static uint64_t pop_completions(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max)
{
    uint64_t taken = 0;

    OFPI_CHECK(ofpi_domain_is_held(cq->domain));
    while (taken < max && cq->count) {
        rows[taken++] = cq->ring[cq->head & (cq->size - 1)];
        cq->head++;
        cq->count--;
    }
    while (taken < max && cq->spilled) {
        struct ofpi_entry *entry = OFP_CONTAINER_OF(ofp_list_pop(&cq->spill), struct ofpi_entry, node);

        if (entry == cq->overflow)
            cq->overflow = NULL;
        rows[taken++] = entry->completion;
        cq->spilled--;
        ofpi_reserve_free(&cq->domain->entries, entry);
    }
    return taken;
}

/* The ring is empty: make progress once, then read. Leaves the domain. */
static int64_t poll_queue_and_leave(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max)
{
    int64_t result;

    ofpi_domain_progress(cq->domain, false);
    result = (int64_t)pop_completions(cq, rows, max);
    ofpi_domain_leave_polled(cq->domain);
    return result;
}

int64_t ofp_cq_read(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max)
{
    int64_t result = ofpi_cq_enter(cq);

    if (result)
        return result;
    if (!cq->count)
        return poll_queue_and_leave(cq, rows, max);
    result = (int64_t)pop_completions(cq, rows, max);
    ofpi_domain_leave(cq->domain);
    return result;
}

/* -------------------------------------------------------------------------------------------------------- waiting */

struct queue_condition {
    const struct ofp_cq *cq;
    uint64_t min;
};

static bool has_enough_completions(const void *argument)
{
    const struct queue_condition *condition = argument;

    return condition->cq->count + condition->cq->spilled >= condition->min || condition->cq->signalled ||
           condition->cq->closing;
}

int64_t ofp_cq_wait(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max, uint64_t min, int64_t timeout,
                    bool *expired)
{
    struct queue_condition condition = {cq, min < max ? min : max};
    struct ofpi_domain *domain = cq->domain;
    int64_t result = ofpi_cq_enter(cq);

    *expired = false;
    if (result)
        return result;
    cq->waiting++;
    result = ofpi_domain_wait(cq->domain, has_enough_completions, &condition, timeout, expired);
    cq->waiting--;
    if (result > 0 && cq->closing)
        result = -ECANCELED;
    /* A waiter consumes the signal only if it returns because of it: one signal wakes one waiter. */
    if (result > 0 && cq->signalled && cq->count + cq->spilled < condition.min) {
        cq->signalled = false;
        result = -ECANCELED;
    }
    /*
     * After the caller's time-out, return fewer than `min` completions. If only this round of waiting has ended, return
     * none: the caller waits again.
     */
    if (result == 1 || (result == 0 && *expired))
        result = (int64_t)pop_completions(cq, rows, max);
    ofpi_domain_leave(domain);
    return result;
}

void ofp_cq_read_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch)
{
    batch->count = ofp_cq_read(cq, batch->rows, batch->size);
}

void ofp_cq_wait_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch, uint64_t min, int64_t timeout, bool *expired)
{
    batch->count = ofp_cq_wait(cq, batch->rows, batch->size, min, timeout, expired);
}

int ofp_cq_signal(struct ofp_cq *cq)
{
    int result = ofpi_cq_enter(cq);

    if (result)
        return result;
    cq->signalled = true;
    ofpi_cq_notify(cq);
    ofpi_domain_wake(cq->domain);
    ofpi_domain_leave(cq->domain);
    return 0;
}

int ofp_cq_fileno(struct ofp_cq *cq)
{
    int result = ofpi_cq_enter(cq);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(cq->domain, &cq->sleeper);
    ofpi_domain_leave(cq->domain);
    return result;
}

static bool has_completions(const void *argument)
{
    const struct ofp_cq *cq = argument;

    return cq->count || cq->spilled || cq->signalled || !ofp_list_empty(&cq->finished);
}

int ofp_cq_arm(struct ofp_cq *cq)
{
    int result = ofpi_cq_enter(cq);

    if (result)
        return result;
    result = ofpi_sleeper_get_fileno(cq->domain, &cq->sleeper);
    if (result >= 0)
        result = ofpi_sleeper_arm(cq->domain, &cq->sleeper, has_completions, cq);
    ofpi_domain_leave(cq->domain);
    return result;
}

int ofp_cq_arm_at_once(struct ofp_cq *cq)
{
    int result = ofpi_cq_enter_as(cq, true);

    if (result)
        return result;
    result = cq->sleeper.epoll_fd >= 0 && ofpi_sleeper_arm_quiet(cq->domain, &cq->sleeper, has_completions, cq);
    ofpi_domain_leave(cq->domain);
    return result;
}
