/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/unsent.h"

#include <stdlib.h>
#include <string.h>

#include "object/operation.h"

/* ---------------------------------------------------------------------------------------------------------- counting */

bool ofpi_unsent_count(struct ofpi_unsent *unsent, const struct ofp_operation *op)
{
    if (ofpi_operation_is_receive(op) || op->op == OFP_READ)
        return false;
    unsent->count++;
    unsent->operations |= UINT64_C(1) << op->op;
    return true;
}

static void count_list(const struct ofp_list *list, bool waited_for, struct ofpi_unsent *unsent)
{
    for (const struct ofp_list *node = list->next; node != list && !(waited_for && unsent->count); node = node->next)
        ofpi_unsent_count(unsent, &OFP_CONTAINER_OF(node, const struct ofp_pending, node)->operation);
}

/*
 * Whether a lingering endpoint waits for this peer: it is up, or in its first connection attempt. Later attempts are
 * not waited for.
 */
static bool is_waited_for(const struct ofpi_peer *peer)
{
    return peer->base.state == OFP_PEER_UP || (peer->base.state == OFP_PEER_CONNECTING && !peer->asked_since);
}

static void count_peers(struct ofpi_peer *const *peers, uint32_t count, bool waited_for, struct ofpi_unsent *unsent)
{
    for (uint32_t i = 0; i < count && !(waited_for && unsent->count); i++) {
        if (!peers[i] || (waited_for && !is_waited_for(peers[i])))
            continue;
        count_list(&peers[i]->backlog, waited_for, unsent);
        count_list(&peers[i]->pendings, waited_for, unsent);
    }
}

void ofpi_unsent_count_pending(const struct ofpi_endpoint *endpoint, bool waited_for, struct ofpi_unsent *unsent)
{
    if (!endpoint->in_flight)
        return;
    count_peers(endpoint->peers, endpoint->peer_capacity, waited_for, unsent);
    count_peers(endpoint->unknown_senders, endpoint->unknown_sender_count, waited_for, unsent);
}

/* ----------------------------------------------------------------------------------------------------------- storing */

/* Without memory the peer is not listed, but the operation is counted. */
static void store_unsent_peer(struct ofpi_unsent *unsent, struct ofpi_peer *peer)
{
    struct ofpi_unsent_peer *named;

    if (!peer || peer->unsent || peer->base.address_length > sizeof(named->address))
        return;
    if (unsent->peer_count == unsent->peer_capacity) {
        uint32_t capacity = unsent->peer_capacity ? 2 * unsent->peer_capacity : 4;

        named = realloc(unsent->peers, capacity * sizeof(*named));
        if (!named)
            return;
        unsent->peers = named;
        unsent->peer_capacity = capacity;
    }
    named = &unsent->peers[unsent->peer_count++];
    named->length = peer->base.address_length;
    memcpy(named->address, peer->base.address, named->length);
    peer->unsent = true;
}

void ofpi_unsent_add(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer, const struct ofp_operation *op)
{
    if (ofpi_unsent_count(&endpoint->unsent, op))
        store_unsent_peer(&endpoint->unsent, peer);
}

static void add_unsent_of_transport(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    uint64_t count = peer ? endpoint->base.ops->unsent(&peer->base) : 0;

    endpoint->unsent.count += count;
    if (count)
        store_unsent_peer(&endpoint->unsent, peer);
}

void ofpi_unsent_add_transport(struct ofpi_endpoint *endpoint)
{
    if (!endpoint->base.ops->unsent)
        return;
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        add_unsent_of_transport(endpoint, endpoint->peers[i]);
    for (uint32_t i = 0; i < endpoint->unknown_sender_count; i++)
        add_unsent_of_transport(endpoint, endpoint->unknown_senders[i]);
}
