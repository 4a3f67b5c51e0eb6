/* SPDX-License-Identifier: BSD-3-Clause */
/* Triggered operations and deferred work. */
#include "operation/deferred.h"

#include <stdlib.h>
#include <string.h>

#include "atomic/atomic.h"
#include "base/check.h"
#include "base/pool.h"
#include "completion/complete.h"
#include "completion/counter.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "ofipy/iov.h"
#include "ofipy/ofp.h"
#include "operation/post.h"
#include "operation/resolve.h"
#include "peer/pending.h"
#include "peer/unsent.h"
#include "progress/flush.h"
#include "progress/progress.h"

/* Deferred work ends once. Operations that set a message aside, or complete more than once, are refused. */
static const uint64_t refused_flags = OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV;

/* --------------------------------------------------------------------------------------------------------- an end */

static void free_work(struct ofpi_domain *domain, struct ofpi_work *work)
{
    if (ofp_list_linked(&work->threshold.node))
        ofp_list_remove(&work->threshold.node);
    free(work->copy);
    ofpi_pool_free(&domain->works, work->id);
}

static void complete_work(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                          struct ofp_completion *completion)
{
    struct ofpi_work *work = OFP_CONTAINER_OF(owner, struct ofpi_work, owner);

    if (work->target)
        ofpi_counter_count(work->target, 1, completion->error);
    ofpi_owner_deliver(owner, endpoint, op_flags, completion);
    /* Free the work last: it contains the owner to which the completion is passed. */
    free_work(work->endpoint->domain, work);
}

/* The record that is posted to the endpoint, owned by the work. */
static struct ofp_operation build_owned_record(struct ofpi_work *work)
{
    struct ofp_operation op = work->operation;

    OFPI_CHECK(ofpi_domain_is_held(work->endpoint->domain) && work->kind == OFP_WORK_OPERATION);
    work->owner.finish = complete_work;
    ofpi_owner_enter(&work->owner, &op);
    return op;
}

static bool is_counter_change(uint32_t kind) { return kind == OFP_WORK_COUNTER_ADD || kind == OFP_WORK_COUNTER_SET; }

/* End work that never starts, or a reduction that was executed or refused. */
static void end_work(struct ofpi_domain *domain, struct ofpi_work *work, int error)
{
    if (work->kind == OFP_WORK_OPERATION) {
        struct ofp_operation op = build_owned_record(work);
        struct ofp_transfer transfer = {.op = &op, .length = op.length};

        ofpi_transfer_report(work->endpoint, &transfer, error, 0);
    } else {
        if (work->kind == OFP_WORK_REDUCE && work->target)
            ofpi_counter_count(work->target, 1, error);
        free_work(domain, work);
    }
}

static bool has_begun(const struct ofpi_work *work) { return !ofp_list_linked(&work->threshold.node); }

/* The endpoint's next due operation behind `node`. NULL: none. */
static const struct ofpi_work *find_next_due(const struct ofpi_endpoint *endpoint, const struct ofp_list *node)
{
    const struct ofp_list *due = &endpoint->domain->due;

    for (node = node->next; node != due; node = node->next) {
        const struct ofpi_work *work = OFP_CONTAINER_OF(node, const struct ofpi_work, threshold.node);

        if (work->endpoint == endpoint && work->kind == OFP_WORK_OPERATION)
            return work;
    }
    return NULL;
}

void ofpi_works_count_due(const struct ofpi_endpoint *endpoint, struct ofpi_unsent *unsent)
{
    const struct ofpi_work *work = find_next_due(endpoint, &endpoint->domain->due);

    for (; work; work = find_next_due(endpoint, &work->threshold.node))
        ofpi_unsent_count(unsent, &work->operation);
}

void ofpi_works_leave_endpoint(struct ofpi_endpoint *endpoint)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    ofpi_works_count_due(endpoint, &endpoint->unsent);
    while ((work = ofpi_pool_find_next(&domain->works, &cursor)))
        if (work->endpoint == endpoint && !has_begun(work))
            end_work(domain, work, ECANCELED);
}

void ofpi_works_leave_counter(struct ofp_counter *counter)
{
    struct ofpi_domain *domain = counter->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    while ((work = ofpi_pool_find_next(&domain->works, &cursor))) {
        /* The work continues without a target counter. */
        if (work->target == counter)
            work->target = NULL;
        /* Without its counter the work would never start, or has no target to change. */
        if (work->threshold.counter == counter || (is_counter_change(work->kind) && !work->target))
            end_work(domain, work, ECANCELED);
    }
}

int ofpi_works_cancel(struct ofpi_endpoint *endpoint, uint64_t context)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    while ((work = ofpi_pool_find_next(&domain->works, &cursor))) {
        if (work->endpoint == endpoint && work->operation.context == context && !has_begun(work)) {
            end_work(domain, work, ECANCELED);
            return 0;
        }
    }
    return -ENOENT;
}

/* ------------------------------------------------------------------------------------------------------- reductions */

/* Resolve source and target. Negative: the reduction is invalid. */
static int check_reduction(struct ofpi_domain *domain, const struct ofp_operation *op, struct iovec *source,
                           struct iovec *target)
{
    struct ofp_region *region;
    uintptr_t one, other;
    int result;

    if (!ofpi_atomic_is_valid(OFP_ATOMIC, op->atomic_op, op->datatype))
        return -EOPNOTSUPP;
    if (op->length % ofpi_datatype_get_size(op->datatype) || op->segment_count)
        return -EINVAL;
    result = ofpi_segment_resolve(domain, OFP_ACCESS_WRITE, op->region, op->offset, op->length, source, &region);
    if (!result)
        result = ofpi_segment_resolve(domain, OFP_ACCESS_READ, op->result_region, op->result_offset, op->length, target,
                                      &region);
    if (result)
        return result;
    /* The core's executor is not atomic against the peers' devices. */
    if (region && region->access & OFP_ACCESS_DEVICE_ATOMIC)
        return -EACCES;
    /* If source and target overlap in part, elements would change before they are read. */
    one = (uintptr_t)source->iov_base;
    other = (uintptr_t)target->iov_base;
    return one != other && one < other + op->length && other < one + op->length ? -EINVAL : 0;
}

/* Check again: a region may have been closed since the reduction was queued. */
static int execute_reduction(struct ofpi_domain *domain, const struct ofp_operation *op)
{
    struct iovec source, target;
    int result = check_reduction(domain, op, &source, &target);

    if (result)
        return result;
    return ofpi_atomic_execute(OFP_ATOMIC, op->atomic_op, op->datatype, target.iov_base, source.iov_base, NULL, NULL,
                               op->length / ofpi_datatype_get_size(op->datatype));
}

/* --------------------------------------------------------------------------------------------------------- starting */

/* -EAGAIN: the transmit queue is full, try again. */
static int start_work(struct ofpi_domain *domain, struct ofpi_work *work)
{
    struct ofp_operation op;
    int result;

    if (work->kind == OFP_WORK_REDUCE) {
        end_work(domain, work, -execute_reduction(domain, &work->operation));
        return 0;
    }
    if (work->kind != OFP_WORK_OPERATION) {
        ofpi_counter_set_value(work->target,
                               (work->kind == OFP_WORK_COUNTER_ADD ? work->target->value : 0) + work->value);
        free_work(domain, work);
        return 0;
    }
    op = build_owned_record(work);
    result = ofpi_endpoint_post_due(work->endpoint, &op);
    if (result && result != -EAGAIN) {
        if (work->endpoint->lingers)
            ofpi_unsent_count(&work->endpoint->unsent, &work->operation);
        end_work(domain, work, -result);
    }
    return result == -EAGAIN ? result : 0;
}

int ofpi_works_start(struct ofpi_domain *domain)
{
    struct ofp_list *node = domain->due.next;
    int started = 0;

    /* Each round tries again whether the transmit queue has space. */
    for (struct ofp_list *each = node; each != &domain->due; each = each->next) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(each, struct ofpi_work, threshold.node)->endpoint;

        if (endpoint)
            endpoint->work_is_stuck = false;
    }
    while (node != &domain->due) {
        struct ofpi_work *work = OFP_CONTAINER_OF(node, struct ofpi_work, threshold.node);
        struct ofp_list *before = node->previous;
        struct ofpi_endpoint *endpoint = work->endpoint;

        /* Skip work behind one that waits for space, so that an endpoint's work starts in order. */
        if (endpoint && endpoint->work_is_stuck) {
            node = node->next;
            continue;
        }
        /* Starting work may complete it and append more work to the list of due work. */
        ofp_list_remove(node);
        if (start_work(domain, work) == -EAGAIN) {
            endpoint->work_is_stuck = true;
            ofp_list_insert_after(before, node);
            node = node->next;
        } else {
            started++;
            node = before->next;
        }
    }
    /* Flush now: a waiting thread may sleep next without leaving the domain. */
    ofpi_domain_flush(domain);
    return started;
}

/* --------------------------------------------------------------------------------------------------------- queueing */

/* Copy the caller's arrays and injected payload, which the caller may reuse when the call returns. */
static int copy_memory(struct ofpi_work *work, const struct ofpi_resolved *resolved)
{
    struct ofp_operation *op = &work->operation;
    bool inject = op->flags & OFP_INJECT && !ofpi_operation_is_receive(op);
    bool laid_out = op->segment_count == OFP_LAYOUT;
    size_t segments = inject || laid_out ? 0 : op->segment_count * sizeof(struct ofp_segment);
    size_t remote = op->remote_segment_count * sizeof(struct ofp_remote_segment);
    size_t payload = inject ? resolved->transfer.length : 0;
    char *copy;

    if (op->segment_count && ofpi_operation_is_atomic(op) && ofpi_operation_has_trait(op, OFP_READS))
        return -EOPNOTSUPP;
    if (op->remote_segment_count > OFP_SEGMENT_LIMIT)
        return -E2BIG;
    if (segments + remote + payload == 0)
        return 0;
    /* The payload may have any length. It lies last, so that the other parts are aligned. */
    copy = work->copy = malloc(segments + remote + payload);
    if (!copy)
        return -ENOMEM;
    if (segments) {
        memcpy(copy, (const void *)(uintptr_t)op->segments, segments);
        op->segments = (uint64_t)(uintptr_t)copy;
    }
    if (remote) {
        memcpy(copy + segments, (const void *)(uintptr_t)op->remote_segments, remote);
        op->remote_segments = (uint64_t)(uintptr_t)(copy + segments);
    }
    if (!payload)
        return 0;
    op->segment_count = 0;
    op->region = OFP_REGION_PROCESS;
    op->offset = (uint64_t)(uintptr_t)(copy + segments + remote);
    op->length = payload;
    ofp_iov_gather(copy + segments + remote, resolved->transfer.iov, resolved->transfer.iov_count, 0, payload);
    return 0;
}

/* `handle`: the endpoint, or an alias with its default flags. */
static int store_operation(struct ofpi_work *work, struct ofpi_endpoint *handle, const struct ofp_operation *operation)
{
    struct ofpi_endpoint *endpoint = handle->behind;
    struct ofpi_resolved resolved;
    int result;

    work->kind = OFP_WORK_OPERATION;
    work->endpoint = endpoint;
    work->operation = *operation;
    if (!ofpi_operation_is_known(operation) || operation->flags & refused_flags)
        return -EINVAL;
    /* OFP_MORE means nothing at the later start. */
    work->operation.flags &= ~(uint64_t)OFP_MORE;
    if (!ofpi_operation_is_receive(operation))
        work->operation.flags = ofpi_send_flags(handle, &work->operation);
    /* Resolve now to refuse an invalid record in the call. It is resolved again when it starts. */
    result = ofpi_operation_check(endpoint, &work->operation, &resolved);
    return result ? result : copy_memory(work, &resolved);
}

static void schedule_work(struct ofpi_work *work, struct ofp_counter *counter, uint64_t threshold)
{
    ofpi_counter_add_threshold(counter, &work->threshold, threshold);
}

static struct ofpi_work *allocate_work(struct ofpi_domain *domain)
{
    uint64_t id;
    struct ofpi_work *work = ofpi_pool_allocate(&domain->works, &id);

    if (work)
        work->id = id;
    return work;
}

static int defer_operation(struct ofpi_endpoint *endpoint, const struct ofp_operation *operation,
                           struct ofp_counter *counter, uint64_t threshold)
{
    struct ofpi_work *work = allocate_work(endpoint->domain);
    int result = work ? store_operation(work, endpoint, operation) : -ENOMEM;

    if (!result)
        schedule_work(work, counter, threshold);
    else if (work)
        free_work(endpoint->domain, work);
    return result;
}

int64_t ofp_post_after(struct ofp_endpoint *handle, const struct ofp_operation *operations, uint64_t count,
                       struct ofp_counter *counter, uint64_t threshold)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    uint64_t accepted = 0;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    if (!ofpi_counter_is_usable(endpoint->domain, counter))
        result = -EINVAL;
    while (!result && accepted < count) {
        result = defer_operation(endpoint, &operations[accepted], counter, threshold);
        accepted += !result;
    }
    ofpi_domain_leave(endpoint->domain);
    return accepted ? (int64_t)accepted : result;
}

static struct ofpi_endpoint *find_endpoint(const struct ofpi_domain *domain, uint32_t id)
{
    for (struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        if (endpoint->base.id == id)
            return endpoint;
    }
    return NULL;
}

static int store_work(struct ofpi_domain *domain, struct ofpi_work *work, const struct ofp_deferred_work *asked)
{
    struct ofpi_endpoint *endpoint;
    struct iovec source, target;

    if (!ofpi_counter_is_usable(domain, asked->counter) || asked->kind > OFP_WORK_REDUCE ||
        ((asked->target || is_counter_change(asked->kind)) && !ofpi_counter_is_usable(domain, asked->target)))
        return -EINVAL;
    work->kind = asked->kind;
    work->target = asked->target;
    work->value = asked->value;
    if (is_counter_change(asked->kind))
        return 0;
    if (asked->kind == OFP_WORK_REDUCE) {
        work->operation = asked->operation;
        return check_reduction(domain, &work->operation, &source, &target);
    }
    endpoint = find_endpoint(domain, asked->operation.endpoint);
    return endpoint ? store_operation(work, endpoint, &asked->operation) : -ENOENT;
}

int ofp_work_queue(struct ofp_domain *handle, const struct ofp_deferred_work *asked, uint64_t *id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_work *work;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    work = allocate_work(domain);
    result = work ? store_work(domain, work, asked) : -ENOMEM;
    if (!result) {
        *id = work->id;
        schedule_work(work, asked->counter, asked->threshold);
    } else if (work) {
        free_work(domain, work);
    }
    ofpi_domain_leave(domain);
    return result;
}

int ofp_work_cancel(struct ofp_domain *handle, uint64_t id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_work *work;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    work = ofpi_pool_find(&domain->works, id);
    if (work && !has_begun(work))
        end_work(domain, work, ECANCELED);
    else
        result = -ENOENT;
    ofpi_domain_leave(domain);
    return result;
}

int64_t ofp_work_flush(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_work *work;
    uint32_t cursor = 0;
    int64_t ended = ofpi_domain_enter(domain);

    if (ended)
        return ended;
    while ((work = ofpi_pool_find_next(&domain->works, &cursor))) {
        if (!has_begun(work)) {
            end_work(domain, work, ECANCELED);
            ended++;
        }
    }
    ofpi_domain_leave(domain);
    return ended;
}
