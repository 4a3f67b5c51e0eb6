/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Freeing uninserted peers. The index of a freed peer leaves the vector, as if the program had removed it, and is never
 * given to another peer. A peer stays while anything depends on it: a connection, an operation, a receive that names it, an
 * unexpected message. Unexpected messages keep only a peer that has given the proof which the provider requires. Without
 * proof one sender could have a million addresses, and send a short message from each.
 */
#include "peer/forget.h"

#include "base/address_vector.h"
#include "base/check.h"
#include "base/ids.h"
#include "match/receive_context.h"
#include "object/vector.h"
#include "peer/peer_find.h"
#include "peer/uninserted.h"

/* ---------------------------------------------------------------------------------------------------- what depends */

static bool has_operations(const struct ofpi_peer *peer)
{
    return !ofp_list_empty(&peer->backlog) || !ofp_list_empty(&peer->pendings) || !ofp_list_empty(&peer->receives) ||
           !ofp_list_empty(&peer->awaiting) || peer->flushes;
}

static bool is_named_by_receive(const struct ofpi_peer *peer)
{
    const struct ofpi_receive_context *context = ofpi_endpoint_of_peer(&peer->base)->receive_context;

    return peer->named && context && ofpi_receive_context_names(context, peer->base.index);
}

static bool is_needed(const struct ofpi_peer *peer)
{
    if (peer->base.state == OFP_PEER_UP || peer->base.state == OFP_PEER_CONNECTING)
        return true;
    return has_operations(peer) || !ofp_list_empty(&peer->announced) || peer->member ||
           (peer->base.proven && peer->unexpected) || is_named_by_receive(peer);
}

/* The peer of this index at another endpoint with the vector; NULL: there is none. */
static struct ofpi_peer *find_sharer(const struct ofpi_endpoint *endpoint, const struct ofp_list *node, uint32_t index)
{
    const struct ofpi_endpoint *other = OFP_CONTAINER_OF(node, const struct ofpi_endpoint, node);

    return other->av == endpoint->av ? ofpi_peer_find_at(other, index) : NULL;
}

/* Whether an endpoint or a receive context with the same vector needs the entry. */
static bool is_entry_needed(const struct ofpi_endpoint *endpoint, uint32_t index)
{
    const struct ofpi_domain *domain = endpoint->domain;

    for (const struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        const struct ofpi_peer *peer = find_sharer(endpoint, node, index);

        if (peer && is_needed(peer))
            return true;
    }
    for (const struct ofp_list *node = domain->receive_contexts.next; node != &domain->receive_contexts;
         node = node->next) {
        const struct ofpi_endpoint *context = OFP_CONTAINER_OF(node, const struct ofpi_endpoint, node);

        if (context->av == endpoint->av && ofpi_receive_context_names(context->receive_context, index))
            return true;
    }
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- freeing */

static void free_idle_peer(struct ofpi_peer *peer)
{
    ofpi_uninserted_clear(peer);
    ofpi_peer_free(peer);
}

static bool free_idle_entry(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_domain *domain = endpoint->domain;

    if (is_entry_needed(endpoint, index))
        return false;
    ofpi_av_table_remove(endpoint->av->table, index);
    for (struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        struct ofpi_endpoint *other = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);
        struct ofpi_peer *peer = find_sharer(endpoint, node, index);

        if (!peer)
            continue;
        other->peers[ofpi_index_of_id(index)] = NULL;
        free_idle_peer(peer);
    }
    return true;
}

static bool free_unknown_sender(struct ofpi_peer *peer)
{
    if (is_needed(peer) || !ofpi_unknown_sender_remove(peer))
        return false;
    free_idle_peer(peer);
    return true;
}

/* Free an idle peer that was not inserted. False: it is needed. */
static bool free_uninserted_peer(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    uint32_t index = peer->base.index;

    if (index == OFP_PEER_UNKNOWN)
        return free_unknown_sender(peer);
    if (ofpi_av_table_is_caller(endpoint->av->table, index))
        return free_idle_entry(endpoint, index);
    /* Another endpoint of the vector has made it the program's. */
    ofpi_uninserted_clear(peer);
    return true;
}

void ofpi_uninserted_peers_free(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct ofpi_endpoint, forgetting);
    uint32_t turns = endpoint->forget_turns;

    (void)now;
    endpoint->forget_turns = 0;
    while (turns-- && endpoint->idle_uninserted_count > OFPI_UNINSERTED_LIMIT) {
        struct ofpi_peer *peer = OFP_CONTAINER_OF(endpoint->idle_uninserted.next, struct ofpi_peer, idle);

        if (!free_uninserted_peer(endpoint, peer))
            ofpi_uninserted_defer(peer);
    }
}

void ofpi_removed_peers_free(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node;

    /* A library that matches may still report messages and operations of the peer. */
    while (!endpoint->info.offloads_matching && (node = ofp_list_pop(&endpoint->removed)))
        ofpi_peer_free(OFP_CONTAINER_OF(node, struct ofpi_peer, node));
}
