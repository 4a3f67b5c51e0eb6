/* SPDX-License-Identifier: BSD-3-Clause */
/* Triggered operations and deferred work. */
#include "deferred.h"

#include <stdlib.h>
#include <string.h>

/* What belongs to a message set aside, or finishes more than once, cannot be told from outside the operation. */
static const uint64_t refused_flags = OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV;

/* ------------------------------------------------------------------------------------------------------ thresholds */

void ofpi_thresholds_add(struct ofp_list *thresholds, struct ofpi_work *work)
{
    struct ofp_list *position = thresholds->previous;

    /* From the end: programs mostly count upwards. */
    while (position != thresholds && OFP_CONTAINER_OF(position, struct ofpi_work, node)->threshold > work->threshold)
        position = position->previous;
    ofp_list_insert_after(position, &work->node);
}

void ofpi_works_due(struct ofp_counter *counter)
{
    while (!ofp_list_empty(&counter->thresholds)) {
        struct ofpi_work *work = OFP_CONTAINER_OF(counter->thresholds.next, struct ofpi_work, node);

        if (work->threshold > counter->value)
            return;
        ofp_list_remove(&work->node);
        work->trigger = NULL;
        ofp_list_append(&counter->domain->due, &work->node);
    }
}

/* --------------------------------------------------------------------------------------------------------- an end */

static void work_free(struct ofpi_domain *domain, struct ofpi_work *work)
{
    if (ofp_list_linked(&work->node))
        ofp_list_remove(&work->node);
    free(work->copy);
    ofpi_pool_give(&domain->works, work->id);
}

static void finish(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                   struct ofp_completion *completion)
{
    struct ofpi_work *work = OFP_CONTAINER_OF(owner, struct ofpi_work, owner);

    if (work->target)
        ofpi_counter_count(work->target, 1, completion->error);
    ofpi_owner_pass_on(owner, endpoint, op_flags, completion);
    work_free(work->endpoint->domain, work);
}

/* The record as it goes into the endpoint. */
static struct ofp_operation own_record(struct ofpi_work *work)
{
    struct ofp_operation op = work->operation;

    work->owner.finish = finish;
    ofpi_owner_enter(&work->owner, &op);
    return op;
}

/* It has not begun, and does not. */
static void work_end(struct ofpi_domain *domain, struct ofpi_work *work, int error)
{
    if (work->kind == OFP_WORK_OPERATION) {
        struct ofp_operation op = own_record(work);
        struct ofp_transfer transfer = {.op = &op, .length = op.length};

        ofpi_transfer_report(work->endpoint, &transfer, error, 0);
    } else {
        work_free(domain, work);
    }
}

static bool has_begun(const struct ofpi_work *work) { return !ofp_list_linked(&work->node); }

void ofpi_works_leave_endpoint(struct ofpi_endpoint *endpoint)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    while ((work = ofpi_pool_next(&domain->works, &cursor)))
        if (work->endpoint == endpoint && !has_begun(work))
            work_end(domain, work, ECANCELED);
}

void ofpi_works_leave_counter(struct ofp_counter *counter)
{
    struct ofpi_domain *domain = counter->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    while ((work = ofpi_pool_next(&domain->works, &cursor))) {
        if (work->target == counter)
            work->target = NULL;
        if (work->trigger == counter || (work->kind != OFP_WORK_OPERATION && !work->target))
            work_end(domain, work, ECANCELED);
    }
}

int ofpi_works_cancel(struct ofpi_endpoint *endpoint, uint64_t context)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofpi_work *work;
    uint32_t cursor = 0;

    while ((work = ofpi_pool_next(&domain->works, &cursor))) {
        if (work->endpoint == endpoint && work->operation.context == context && !has_begun(work)) {
            work_end(domain, work, ECANCELED);
            return 0;
        }
    }
    return -ENOENT;
}

/* --------------------------------------------------------------------------------------------------------- starting */

/* -EAGAIN: the transmit queue is full, try again. */
static int work_start(struct ofpi_domain *domain, struct ofpi_work *work)
{
    struct ofp_operation op;
    int result;

    if (work->kind != OFP_WORK_OPERATION) {
        ofpi_counter_change(work->target, (work->kind == OFP_WORK_COUNTER_ADD ? work->target->value : 0) + work->value);
        work_free(domain, work);
        return 0;
    }
    op = own_record(work);
    result = ofpi_endpoint_post(work->endpoint, &op);
    if (result && result != -EAGAIN)
        work_end(domain, work, -result);
    return result == -EAGAIN ? result : 0;
}

int ofpi_works_start(struct ofpi_domain *domain)
{
    struct ofp_list *node = domain->due.next;
    int started = 0;

    for (struct ofp_list *each = node; each != &domain->due; each = each->next) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(each, struct ofpi_work, node)->endpoint;

        if (endpoint)
            endpoint->work_is_stuck = false;
    }
    while (node != &domain->due) {
        struct ofpi_work *work = OFP_CONTAINER_OF(node, struct ofpi_work, node);
        struct ofp_list *before = node->previous;
        struct ofpi_endpoint *endpoint = work->endpoint;

        if (endpoint && endpoint->work_is_stuck) {
            node = node->next;
            continue;
        }
        /* Starting one may finish it, and make others due, at the end of the list. */
        ofp_list_remove(node);
        if (work_start(domain, work) == -EAGAIN) {
            endpoint->work_is_stuck = true;
            ofp_list_insert_after(before, node);
            node = node->next;
        } else {
            started++;
            node = before->next;
        }
    }
    /* A thread that waits may go to sleep next, without leaving the domain. */
    ofpi_domain_flush(domain);
    return started;
}

/* --------------------------------------------------------------------------------------------------------- queueing */

/* The caller's arrays and injected payload are its own again when the call returns. */
static int copy_memory(struct ofpi_work *work, const struct ofpi_resolved *resolved)
{
    struct ofp_operation *op = &work->operation;
    bool inject = op->flags & OFP_INJECT && !ofpi_operation_is_receive(op);
    size_t segments = inject ? 0 : op->segment_count * sizeof(struct ofp_segment);
    size_t remote = op->remote_segment_count * sizeof(struct ofp_remote_segment);
    size_t payload = inject ? resolved->transfer.length : 0;
    char *copy;

    if (op->segment_count && (op->op == OFP_FETCH_ATOMIC || op->op == OFP_COMPARE_ATOMIC))
        return -EOPNOTSUPP;
    if (op->remote_segment_count > OFP_SEGMENT_LIMIT)
        return -E2BIG;
    if (segments + remote + payload == 0)
        return 0;
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
    copy += segments + remote;
    for (uint32_t i = 0; i < resolved->transfer.iov_count; i++) {
        if (resolved->iov[i].iov_len)
            memcpy(copy, resolved->iov[i].iov_base, resolved->iov[i].iov_len);
        copy += resolved->iov[i].iov_len;
    }
    return 0;
}

/* `handle`: an endpoint, or an alias, whose flags it takes. */
static int take_operation(struct ofpi_work *work, struct ofpi_endpoint *handle, const struct ofp_operation *operation)
{
    struct ofpi_endpoint *endpoint = handle->behind;
    struct ofpi_resolved resolved;
    int result;

    work->kind = OFP_WORK_OPERATION;
    work->endpoint = endpoint;
    work->operation = *operation;
    if (operation->flags & (~(uint64_t)OFP_OPERATION_FLAGS | refused_flags))
        return -EINVAL;
    /* Nobody knows what comes next when it starts. */
    work->operation.flags &= ~(uint64_t)OFP_MORE;
    if (!ofpi_operation_is_receive(operation))
        work->operation.flags = ofpi_send_flags(handle, &work->operation);
    result = ofpi_operation_resolve(endpoint, &work->operation, &resolved);
    return result ? result : copy_memory(work, &resolved);
}

static void wait_for(struct ofpi_work *work, struct ofp_counter *counter, uint64_t threshold)
{
    work->trigger = counter;
    work->threshold = threshold;
    ofpi_thresholds_add(&counter->thresholds, work);
    ofpi_works_due(counter);
}

static struct ofpi_work *work_new(struct ofpi_domain *domain)
{
    uint64_t id;
    struct ofpi_work *work = ofpi_pool_take(&domain->works, &id);

    if (work)
        work->id = id;
    return work;
}

static int defer_operation(struct ofpi_endpoint *endpoint, const struct ofp_operation *operation,
                           struct ofp_counter *counter, uint64_t threshold)
{
    struct ofpi_work *work = work_new(endpoint->domain);
    int result = work ? take_operation(work, endpoint, operation) : -ENOMEM;

    if (!result)
        wait_for(work, counter, threshold);
    else if (work)
        work_free(endpoint->domain, work);
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
    if (!ofpi_counter_serves(endpoint->domain, counter))
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

static int take_work(struct ofpi_domain *domain, struct ofpi_work *work, const struct ofp_deferred_work *asked)
{
    struct ofpi_endpoint *endpoint;
    bool operation = asked->kind == OFP_WORK_OPERATION;

    if (!ofpi_counter_serves(domain, asked->counter) || asked->kind > OFP_WORK_COUNTER_SET ||
        ((asked->target || !operation) && !ofpi_counter_serves(domain, asked->target)))
        return -EINVAL;
    work->kind = asked->kind;
    work->target = asked->target;
    work->value = asked->value;
    if (!operation)
        return 0;
    endpoint = find_endpoint(domain, asked->operation.endpoint);
    return endpoint ? take_operation(work, endpoint, &asked->operation) : -ENOENT;
}

int ofp_work_queue(struct ofp_domain *handle, const struct ofp_deferred_work *asked, uint64_t *id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_work *work;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    work = work_new(domain);
    result = work ? take_work(domain, work, asked) : -ENOMEM;
    if (!result) {
        *id = work->id;
        wait_for(work, asked->counter, asked->threshold);
    } else if (work) {
        work_free(domain, work);
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
        work_end(domain, work, ECANCELED);
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
    while ((work = ofpi_pool_next(&domain->works, &cursor))) {
        if (!has_begun(work)) {
            work_end(domain, work, ECANCELED);
            ended++;
        }
    }
    ofpi_domain_leave(domain);
    return ended;
}
