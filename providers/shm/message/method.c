/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/method.h"

#include "base/choice.h"
#include "message/cost.h"
#include "message/send.h"

bool shm_sender_is_asleep(const struct shm_link *link)
{
    return ofp_load_relaxed(&link->ring.header->status) & SHM_SLEEPING;
}

/*
 * Without attach, memory that is not mapped needs the pipeline. With attach, the pipeline requires a sender that counts
 * its polls.
 */
uint32_t shm_methods_find(const struct shm_link *link, bool mapped, bool attachable)
{
    uint32_t methods = mapped ? SHM_METHOD_BIT(OFP_MOVED_MAPPED) : 0;

    if (!attachable)
        return methods ? methods : SHM_METHOD_BIT(OFP_MOVED_PIPELINED);
    methods |= SHM_METHOD_BIT(OFP_MOVED_ATTACHED);
    if (!link->endpoint->domain->always_attach && link->segment.knows & SHM_KNOWS_LOOKS)
        methods |= SHM_METHOD_BIT(OFP_MOVED_PIPELINED);
    return methods;
}

static enum ofp_protocol_reason choose_reason(uint32_t methods, enum ofp_moved method, uint64_t cost)
{
    if (method == OFP_MOVED_MAPPED && (!cost || methods == SHM_METHOD_BIT(OFP_MOVED_MAPPED)))
        return OFP_PROTOCOL_BY_MEMORY;
    return methods == SHM_METHOD_BIT(method) ? OFP_PROTOCOL_FORCED : OFP_PROTOCOL_BY_COST;
}

bool shm_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                         struct ofp_protocol_choice *choice)
{
    struct shm_link *link = shm_link_of(peer);
    enum ofp_moved method;
    uint32_t methods;

    if (!link || (query->received && !query->length))
        return false;
    if (!query->received) {
        *choice = shm_send_choose_protocol(link, query->length);
        return true;
    }
    methods = shm_methods_find(link, query->shared, link->attach);
    method =
        shm_cost_find_method(link, query->length, query->shared, shm_sender_is_asleep(link), methods, &choice->cost);
    choice->protocol = OFP_PROTOCOL_MAPPED + (enum ofp_protocol)method;
    choice->reason = choose_reason(methods, method, choice->cost);
    return true;
}
