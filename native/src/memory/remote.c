/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of RMA and atomics: checking access, counting, and reporting completions. */
#include "memory/remote.h"

#include <errno.h>

#include "atomic/atomic.h"
#include "base/check.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "object/region.h"
#include "progress/wait.h"

int ofpi_remote_access_acquire(struct ofp_endpoint *handle, uint64_t key, uint64_t offset, uint64_t length,
                               uint32_t access, struct ofp_remote_access *result)
{
    struct ofpi_domain *domain = ((struct ofpi_endpoint *)handle)->domain;
    struct ofpi_region *region = ofpi_regions_find_key(&domain->regions, key);

    if (!region)
        return -OFP_ENOKEY;
    if (access & ~region->base.access)
        return -EACCES;
    /* An offset below the base wraps around to a value beyond every length. */
    offset -= region->base.device[0].remote_base;
    if (length > region->base.length || offset > region->base.length - length)
        return -ERANGE;
    result->region = &region->base;
    result->memory = region->base.base + offset;
    result->length = length;
    /* An access may last beyond this call: when the region closes, this list finds the access to clear its memory. */
    ofp_list_append(&region->reached, &result->node);
    return 0;
}

void ofpi_remote_access_release(struct ofp_remote_access *access)
{
    if (ofp_list_linked(&access->node))
        ofp_list_remove(&access->node);
    access->region = NULL;
    access->memory = NULL;
}

void ofpi_remote_access_withdraw(struct ofpi_region *region)
{
    struct ofp_list *node;

    OFPI_CHECK(!region->has_key);
    while ((node = ofp_list_pop(&region->reached))) {
        struct ofp_remote_access *access = OFP_CONTAINER_OF(node, struct ofp_remote_access, node);

        access->region = NULL;
        access->memory = NULL;
    }
}

static void count_in_region(struct ofpi_region *region, uint64_t flags, uint64_t length)
{
    struct ofp_counter *counter = flags & OFP_COMPLETED_REMOTE_READ ? region->remote_read : region->remote_write;

    if (counter)
        ofpi_counter_count(counter, length, 0);
}

void ofpi_remote_event_deliver(struct ofp_endpoint *handle, struct ofp_peer *peer, struct ofp_region *region,
                               uint64_t flags, uint64_t data, uint64_t length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofp_completion completion = {
        .flags = flags | (flags & OFP_COMPLETED_ATOMIC ? 0 : OFP_COMPLETED_RMA),
        .length = length,
        .data = data,
        .source = peer ? peer->index : OFP_PEER_UNKNOWN,
        .endpoint = handle->id,
    };

    ofpi_counters_count(endpoint, completion.flags, length, 0);
    if (region && region->remote_events)
        count_in_region((struct ofpi_region *)region, flags, length);
    if (!(flags & OFP_COMPLETED_REMOTE_CQ_DATA) && !endpoint->remote_events)
        return;
    ofpi_cq_push_unreserved(endpoint->rx_cq, &completion);
    ofpi_domain_wake(endpoint->domain);
}

int ofpi_remote_atomic_execute(const struct ofp_remote_access *access, uint32_t operation_code, uint32_t atomic_op,
                               uint32_t datatype, const void *operand, const void *compare, void *result)
{
    size_t size = ofpi_datatype_get_size(datatype);

    /* The region was closed after the access was acquired. */
    if (!access->memory)
        return -ECANCELED;
    if (!size)
        return -EOPNOTSUPP;
    /*
     * The device's atomics are not atomic against the core's executor. `region` is NULL for memory of another process.
     */
    if (access->region && access->region->access & OFP_ACCESS_DEVICE_ATOMIC)
        return -EACCES;
    if (access->length % size)
        return -EINVAL;
    return ofpi_atomic_execute(operation_code, atomic_op, datatype, access->memory, operand, compare, result,
                               access->length / size);
}
