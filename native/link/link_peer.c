/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link_index.h"
#include "link/link_lane.h"

static const uint8_t unknown[OFP_IDENTITY_SIZE];

static struct link_endpoint *link_endpoint_of_peer(const struct ofp_peer *outer)
{
    return link_endpoint_of(outer->endpoint);
}

/* ------------------------------------------------------------------------------------------------- decoding addresses */

/* Whether the peer can be on this host. An address without a host id can be anywhere. */
static bool can_be_on_host(const struct link_domain *domain, const struct link_address *address)
{
    return link_is_zero(address->host, LINK_HOST_SIZE) ||
           (memcmp(address->host, domain->host, LINK_HOST_SIZE) == 0 && !link_is_zero(domain->host, LINK_HOST_SIZE));
}

static bool is_reachable(const struct link_part *part, const struct ofp_peer *inner)
{
    char ignored[OFP_TEXT_MAX];

    if (part->provider->address_check(&part->info, inner->address, inner->address_length) != 0)
        return false;
    return !part->provider->reaches ||
           part->provider->reaches(&part->info, inner->address, inner->address_length, ignored, sizeof(ignored)) == 0;
}

/* Set the addresses of one lane: the first entry is the address, all further entries are alternatives. */
static struct ofp_other_address *find_entries(struct link_lane *lane, const struct link_part *part,
                                              const struct link_address *address, struct ofp_other_address *others)
{
    const char *name = part->info.provider;
    const uint8_t *cursor = NULL;
    struct link_entry entry;

    lane->base.address = NULL;
    lane->base.address_length = 0;
    lane->base.others = others;
    lane->base.other_count = 0;
    while (link_address_read_next(address, &cursor, &entry)) {
        if (!link_entry_is_of(&entry, name, strlen(name)))
            continue;
        if (lane->base.address) {
            others[lane->base.other_count++] = (struct ofp_other_address){entry.address, entry.length};
        } else {
            lane->base.address = entry.address;
            lane->base.address_length = entry.length;
        }
    }
    return others + lane->base.other_count;
}

static void set_lanes(struct ofp_peer *outer, const struct link_address *address, struct ofp_other_address *others)
{
    const struct link_domain *domain = link_domain_of(outer->endpoint->domain);
    const struct link_endpoint *endpoint = link_endpoint_of_peer(outer);

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        const struct link_part *part = &endpoint->set->parts[i];
        struct link_lane *lane = link_lane_find(outer, i);

        others = find_entries(lane, part, address, others);
        lane->base.connects_only = address->connects_only && !part->within_host;
        lane->reachable = lane->base.address && (!part->within_host || can_be_on_host(domain, address)) &&
                          is_reachable(part, &lane->base);
    }
}

/* The index is optional: if it has no memory, a caller that sends only its identity becomes a separate peer. */
static void set_identity(struct ofp_peer *outer, const uint8_t *identity, bool is_stated)
{
    struct link_index *index = link_endpoint_of_peer(outer)->index;
    struct link_peer *peer = link_peer_of(outer);

    link_index_remove(index, peer->identity, outer);
    memcpy(peer->identity, identity, OFP_IDENTITY_SIZE);
    peer->is_stated = is_stated;
    link_index_add(index, identity, outer);
}

/* Decode the address into lanes. No lane may be active: providers read the addresses of active lanes. */
static int update_lanes(struct ofp_peer *outer)
{
    struct link_peer *peer = link_peer_of(outer);
    struct link_address address;
    void *copy = malloc(outer->address_length);
    struct ofp_other_address *others;

    if (!copy)
        return -ENOMEM;
    memcpy(copy, outer->address, outer->address_length);
    if (link_address_read(&address, copy, outer->address_length) != 0 ||
        !(others = calloc(address.count, sizeof(*others)))) {
        free(copy);
        return -ENOMEM;
    }
    free(peer->address);
    free(peer->others);
    peer->address = copy;
    peer->others = others;
    peer->stale = false;
    set_lanes(outer, &address, others);
    if (!link_is_zero(address.identity, OFP_IDENTITY_SIZE))
        set_identity(outer, address.identity, true);
    return 0;
}

int link_peer_open(struct ofp_peer *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of_peer(outer);

    link_peer_of(outer)->outer = outer;
    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        struct link_lane *lane = link_lane_find(outer, i);

        lane->outer = outer;
        lane->base.endpoint = &link_inner_find(outer->endpoint, i)->base;
        lane->base.index = outer->index;
        lane->base.private = (char *)lane + link_size_compute_aligned(sizeof(*lane));
    }
    return update_lanes(outer);
}

void link_peer_close(struct ofp_peer *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of_peer(outer);
    struct link_peer *peer = link_peer_of(outer);

    if (endpoint->index)
        link_index_remove(endpoint->index, peer->identity, outer);
    free(peer->address);
    free(peer->others);
    free(peer->why);
    free(peer->remedy);
}

static bool is_idle(const struct ofp_peer *outer)
{
    return outer->state == OFP_PEER_UNUSED || outer->state == OFP_PEER_LOST;
}

void link_peer_readdressed(struct ofp_peer *outer)
{
    link_peer_of(outer)->stale = true;
    if (is_idle(outer))
        update_lanes(outer);
}

void link_peer_update_address(struct ofp_peer *outer)
{
    if (link_peer_of(outer)->stale)
        update_lanes(outer);
}

int link_peer_connect(struct ofp_peer *outer, char *text, size_t text_size)
{
    (void)text, (void)text_size;
    link_peer_update_address(outer);
    link_lanes_clear_attempts(link_peer_of(outer));
    link_lanes_connect(outer);
    return 0;
}

void link_peer_disconnect(struct ofp_peer *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of_peer(outer);
    struct link_peer *peer = link_peer_of(outer);

    link_lanes_disconnect(outer);
    link_lanes_clear_attempts(peer);
    if (peer->is_stated)
        return;
    /* Another endpoint may answer at this address next time. */
    if (endpoint->index)
        link_index_remove(endpoint->index, peer->identity, outer);
    memset(peer->identity, 0, OFP_IDENTITY_SIZE);
}

/* ------------------------------------------------------------------------------------------------------------ identities */

/* The core finds a caller by a part of its address, or creates a peer with this partial address. */
static struct ofp_peer *find_unknown_caller(struct ofp_endpoint *inner, const uint8_t *identity, bool connects_only,
                                            const void *address, size_t length)
{
    static const uint8_t no_host[LINK_HOST_SIZE];
    struct ofp_endpoint *outer = link_inner_of(inner)->outer;
    uint8_t bytes[LINK_HEAD_SIZE + LINK_ENTRY_HEAD + sizeof(inner->info->provider) + OFP_ADDRESS_MAX];
    struct link_writer writer;

    if (length > OFP_ADDRESS_MAX)
        return NULL;
    link_writer_init(&writer, bytes, sizeof(bytes), no_host, identity, connects_only);
    link_address_add(&writer, inner->info->provider, address, length);
    return outer->services->peer_by_address(outer, bytes, writer.length);
}

struct ofp_peer *link_peer_identify_caller(struct ofp_endpoint *inner, const uint8_t *identity, bool connects_only,
                                           const void *address, size_t length)
{
    const struct link_inner *own = link_inner_of(inner);
    struct link_endpoint *endpoint = link_endpoint_of(own->outer);
    bool says = identity && !link_is_zero(identity, OFP_IDENTITY_SIZE);
    struct ofp_peer *outer = says ? link_index_find(endpoint->index, identity) : NULL;
    struct link_lane *lane;

    if (!outer)
        outer = find_unknown_caller(inner, says ? identity : unknown, connects_only, address, length);
    if (outer && says && !link_peer_of(outer)->is_stated)
        set_identity(outer, identity, false);
    if (!outer)
        return NULL;
    lane = link_lane_find(outer, own->number);
    lane->base.connects_only = connects_only;
    lane->base.index = outer->index;
    return &lane->base;
}

const uint8_t *link_peer_get_identity(const struct ofp_peer *outer)
{
    const struct link_peer *peer = link_peer_of(outer);

    return link_is_zero(peer->identity, OFP_IDENTITY_SIZE) ? NULL : peer->identity;
}

int link_peer_identity_check(struct ofp_peer *inner, const uint8_t *identity, char *text, size_t text_size)
{
    const struct ofp_peer *outer = link_lane_of(inner)->outer, *same;
    const struct link_peer *peer = link_peer_of(outer);

    if (link_is_zero(identity, OFP_IDENTITY_SIZE))
        return 0;
    if (peer->is_stated && memcmp(peer->identity, identity, OFP_IDENTITY_SIZE) != 0) {
        snprintf(text, text_size,
                 "another endpoint answers at its address than the one that the address was made by: it was opened "
                 "again, or the machine is a copy; exchange addresses anew");
        return -ECONNREFUSED;
    }
    if (peer->is_stated)
        return 0;
    same = link_index_find(link_endpoint_of_peer(outer)->index, identity);
    if (same && same != outer) {
        snprintf(text, text_size, "it is the same endpoint as peer %u, which was met before; send to that one",
                 same->index);
        return -ECONNREFUSED;
    }
    return 0;
}

int link_peer_identified(struct ofp_peer *inner, const uint8_t *identity, char *text, size_t text_size)
{
    struct ofp_peer *outer = link_lane_of(inner)->outer;
    int result = link_peer_identity_check(inner, identity, text, text_size);

    if (!result && !link_peer_of(outer)->is_stated && !link_is_zero(identity, OFP_IDENTITY_SIZE))
        set_identity(outer, identity, false);
    return result;
}
