/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of an endpoint: made at first use; unknown_senders are those whose address is in no vector. */
#include "peer/peer_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_vector.h"
#include "base/check.h"
#include "base/ids.h"
#include "base/page.h"
#include "object/peer.h"
#include "object/vector.h"
#include "peer/backlog.h"
#include "peer/peer_entry.h"
#include "peer/peer_state.h"
#include "peer/uninserted.h"

static size_t compute_private_size(const struct ofp_endpoint *endpoint)
{
    return ofpi_peer_compute_private_size(endpoint) + ((const struct ofpi_endpoint *)endpoint)->domain->hook_peer_size;
}

void ofpi_peer_clear(const struct ofp_peer *peer)
{
    /* With `peers_persist` the transport's part is not zeroed. The hooks' bytes lie behind it. */
    size_t kept = peer->endpoint->ops->peers_persist ? ofpi_peer_compute_private_size(peer->endpoint) : 0;

    memset((char *)peer->private + kept, 0, compute_private_size(peer->endpoint) - kept);
}

static struct ofpi_peer *create_peer(struct ofpi_endpoint *endpoint, uint32_t index, const void *address, size_t length)
{
    size_t own = compute_private_size(&endpoint->base);
    struct ofpi_peer *peer = calloc(1, sizeof(*peer) + own + length);
    char *tail = (char *)(peer + 1);

    if (!peer)
        return NULL;
    ofp_list_init(&peer->backlog);
    ofp_list_init(&peer->pendings);
    ofp_list_init(&peer->announced);
    ofp_list_init(&peer->receives);
    ofp_list_init(&peer->awaiting);
    peer->delay.expired = ofpi_backlog_delay_expired;
    peer->counts = &endpoint->counts->others;
    peer->base.endpoint = &endpoint->base;
    peer->base.index = index;
    peer->base.private = tail;
    peer->base.address = memcpy(tail + own, address, length);
    peer->base.address_length = length;
    if (endpoint->base.ops->peer_open && endpoint->base.ops->peer_open(&peer->base) != 0) {
        free(peer);
        return NULL;
    }
    return peer;
}

/* The address lies behind the peer, unless another one was inserted. */
static void free_peer_address(struct ofpi_peer *peer)
{
    if (peer->readdressed)
        free((void *)(uintptr_t)peer->base.address);
}

void ofpi_peer_free(struct ofpi_peer *peer)
{
    OFPI_CHECK(!peer || (ofp_list_empty(&peer->backlog) && ofp_list_empty(&peer->pendings)));
    OFPI_CHECK(!peer || !peer->flushes);
    if (peer && peer->base.endpoint->ops->peer_close)
        peer->base.endpoint->ops->peer_close(&peer->base);
    if (peer) {
        ofpi_peer_attempts_stop(peer);
        ofpi_peer_entry_close(peer);
        free(peer->member);
        free_peer_address(peer);
    }
    free(peer);
}

/* Replace the peer's address. Without memory for the new one the peer keeps the old one. */
static void replace_peer_address(struct ofpi_peer *peer, const void *address, size_t length)
{
    void *copy;

    if (length == peer->base.address_length && memcmp(address, peer->base.address, length) == 0)
        return;
    copy = malloc(length);
    if (!copy)
        return;
    free_peer_address(peer);
    peer->base.address = memcpy(copy, address, length);
    peer->base.address_length = length;
    peer->readdressed = true;
    peer->base.endpoint->ops->peer_readdressed(&peer->base);
}

void ofpi_peer_readdressed(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, index);
    size_t length;
    const void *address = ofpi_av_table_find_address(endpoint->av->table, index, &length);

    if (peer && address)
        replace_peer_address(peer, address, length);
}

static int grow_peer_table(struct ofpi_endpoint *endpoint, uint32_t place)
{
    uint32_t capacity = endpoint->peer_capacity ? endpoint->peer_capacity : 16;
    struct ofpi_peer **peers;

    while (capacity <= place)
        capacity *= 2;
    /* Only the table moves: providers and messages point to the peers themselves. */
    peers = realloc(endpoint->peers, capacity * sizeof(*peers));
    if (!peers)
        return -ENOMEM;
    memset(peers + endpoint->peer_capacity, 0, (capacity - endpoint->peer_capacity) * sizeof(*peers));
    endpoint->peers = peers;
    endpoint->peer_capacity = capacity;
    return 0;
}

static struct ofpi_peer *remove_unknown_sender(struct ofpi_endpoint *endpoint, uint32_t number)
{
    struct ofpi_peer *peer = endpoint->unknown_senders[ofpi_index_of_id(number)];

    ofpi_av_table_remove(endpoint->unknown_sender_addresses, number);
    endpoint->unknown_senders[ofpi_index_of_id(number)] = NULL;
    return peer;
}

bool ofpi_unknown_sender_remove(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);
    uint32_t number;

    if (ofpi_av_table_find(endpoint->unknown_sender_addresses, peer->base.address, peer->base.address_length,
                           &number) != 0 ||
        endpoint->unknown_senders[ofpi_index_of_id(number)] != peer)
        return false;
    remove_unknown_sender(endpoint, number);
    return true;
}

/* The peer object of a sender that was unknown until now, with its connection, for the new index. */
static struct ofpi_peer *acquire_unknown_sender(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    uint32_t number;
    struct ofpi_peer *peer;

    if (!endpoint->unknown_sender_addresses ||
        ofpi_av_table_find(endpoint->unknown_sender_addresses, address, length, &number) != 0)
        return NULL;
    peer = remove_unknown_sender(endpoint, number);
    ofpi_uninserted_clear(peer);
    return peer;
}

/* A library that matches by itself uses its peers until the endpoint closes, so these are never freed before. */
static void mark_uninserted(struct ofpi_peer *peer)
{
    if (!ofpi_endpoint_of_peer(&peer->base)->info.offloads_matching)
        ofpi_uninserted_mark(peer);
}

/* Out of line, so that the fast path of ofpi_peer_get saves no registers. */
static __attribute__((noinline)) struct ofpi_peer *create_indexed_peer(struct ofpi_endpoint *endpoint, uint32_t index,
                                                                       int *error)
{
    uint32_t place = ofpi_index_of_id(index);
    size_t length;
    const void *address = ofpi_av_table_find_address(endpoint->av->table, index, &length);
    struct ofpi_peer *peer;

    *error = -OFP_EADDRNOTAVAIL;
    if (!address)
        return NULL;
    *error = -ENOMEM;
    if (place >= endpoint->peer_capacity && grow_peer_table(endpoint, place) != 0)
        return NULL;
    peer = acquire_unknown_sender(endpoint, address, length);
    if (peer) {
        peer->base.index = index;
        ofpi_peer_mark_expected(peer);
        replace_peer_address(peer, address, length);
    } else {
        peer = create_peer(endpoint, index, address, length);
    }
    if (!peer)
        return NULL;
    peer->expected = peer->base.state != OFP_PEER_UP;
    endpoint->peers[place] = peer;
    if (ofpi_av_table_is_caller(endpoint->av->table, index))
        mark_uninserted(peer);
    *error = 0;
    return peer;
}

struct ofpi_peer *ofpi_peer_get(struct ofpi_endpoint *endpoint, uint32_t index, int *error)
{
    struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, index);

    return __builtin_expect(peer != NULL, 1) ? peer : create_indexed_peer(endpoint, index, error);
}

struct ofpi_peer *ofpi_only_peer_create(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    if (!endpoint->peer_capacity && grow_peer_table(endpoint, 0) != 0)
        return NULL;
    /* Without an address vector the peer has no index for completions. */
    endpoint->peers[0] = create_peer(endpoint, OFP_PEER_UNKNOWN, address, length);
    return endpoint->peers[0];
}

int ofpi_peers_create(struct ofpi_endpoint *endpoint)
{
    uint32_t cursor = 0, index;
    int error = 0;

    while (!error && ofpi_av_table_find_next(endpoint->av->table, &cursor, &index) == 0)
        ofpi_peer_get(endpoint, index, &error);
    return error;
}

static bool grow_unknown_senders(struct ofpi_endpoint *endpoint, uint32_t place)
{
    struct ofpi_peer **unknown_senders;

    if (place < endpoint->unknown_sender_count)
        return true;
    unknown_senders = realloc(endpoint->unknown_senders, (place + 1) * sizeof(*unknown_senders));
    if (!unknown_senders)
        return false;
    memset(unknown_senders + endpoint->unknown_sender_count, 0,
           (place + 1 - endpoint->unknown_sender_count) * sizeof(*unknown_senders));
    endpoint->unknown_senders = unknown_senders;
    endpoint->unknown_sender_count = place + 1;
    return true;
}

static struct ofpi_peer *get_unknown_sender(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    struct ofpi_peer *peer = NULL;
    uint32_t number;

    if (!endpoint->unknown_sender_addresses &&
        !(endpoint->unknown_sender_addresses = ofpi_av_table_create(endpoint->base.domain->provider)))
        return NULL;
    if (ofpi_av_table_find(endpoint->unknown_sender_addresses, address, length, &number) == 0)
        return endpoint->unknown_senders[ofpi_index_of_id(number)];
    if (ofpi_av_table_insert(endpoint->unknown_sender_addresses, address, length, &number) != 0)
        return NULL;
    if (grow_unknown_senders(endpoint, ofpi_index_of_id(number)))
        peer = create_peer(endpoint, OFP_PEER_UNKNOWN, address, length);
    if (!peer) {
        ofpi_av_table_remove(endpoint->unknown_sender_addresses, number);
        return NULL;
    }
    endpoint->unknown_senders[ofpi_index_of_id(number)] = peer;
    mark_uninserted(peer);
    return peer;
}

/* A caller that nobody has inserted. Without auto_insert, or without memory for the entry, it has no index. */
static struct ofpi_peer *create_caller(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    struct ofpi_peer *peer;
    uint32_t index;
    int error;

    if (!endpoint->av->auto_insert || ofpi_av_table_insert(endpoint->av->table, address, length, &index) != 0)
        return get_unknown_sender(endpoint, address, length);
    ofpi_av_table_mark_caller(endpoint->av->table, index, true);
    peer = ofpi_peer_get(endpoint, index, &error);
    if (!peer)
        ofpi_av_table_remove(endpoint->av->table, index);
    return peer;
}

struct ofp_peer *ofpi_peer_find_by_address(struct ofp_endpoint *handle, const void *address, size_t length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_peer *peer;
    uint32_t index;
    int error = 0;

    if (ofpi_av_table_find(endpoint->av->table, address, length, &index) == 0)
        peer = ofpi_peer_get(endpoint, index, &error);
    else
        peer = create_caller(endpoint, address, length);
    return peer ? &peer->base : NULL;
}

uint32_t ofpi_source_find(struct ofp_endpoint *handle, const void *address, size_t length)
{
    const struct ofpi_endpoint *endpoint = (const struct ofpi_endpoint *)handle;
    uint32_t index;

    return ofpi_av_table_find(endpoint->av->table, address, length, &index) == 0 ? index : OFP_PEER_UNKNOWN;
}

void ofpi_peers_free(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&endpoint->removed)))
        ofpi_peer_free(OFP_CONTAINER_OF(node, struct ofpi_peer, node));
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        ofpi_peer_free(endpoint->peers[i]);
    for (uint32_t i = 0; i < endpoint->unknown_sender_count; i++)
        ofpi_peer_free(endpoint->unknown_senders[i]);
    free(endpoint->peers);
    free(endpoint->unknown_senders);
    if (endpoint->unknown_sender_addresses)
        ofpi_av_table_free(endpoint->unknown_sender_addresses);
    endpoint->peers = endpoint->unknown_senders = NULL;
    endpoint->unknown_sender_addresses = NULL;
    endpoint->peer_capacity = endpoint->unknown_sender_count = 0;
}
