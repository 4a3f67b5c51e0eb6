/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions that concern link: its lanes and the keys of its devices. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "object/endpoint.h"
#include "ofipy/connect.h"
#include "ofipy/ways.h"
#include "peer/peer_find.h"
#include "progress/progress.h"
#include "provider/provider_registry.h"
#include "link/link_keys.h"
#include "link/link_region.h"
#include "link/link_tables.h"
#include "link/link_lane.h"

int ofp_provider_link(struct ofp_provider **result, char *text, size_t text_size)
{
    text[0] = 0;
    return ofpi_provider_register(link_provider_get, result, text, text_size);
}

static bool is_link(const struct ofpi_domain *domain) { return strcmp(domain->base.provider->name, LINK_NAME) == 0; }

/* The endpoint is one of link. */
static const char *choose_lane_name(struct ofpi_endpoint *endpoint, uint32_t index, int *error)
{
    const struct ofpi_peer *peer = ofpi_peer_get(endpoint, index, error);
    const struct link_lane *lane = peer ? link_lane_choose(&peer->base) : NULL;

    if (lane)
        return link_name_of_lane(lane);
    if (peer)
        *error = -EHOSTUNREACH;
    return NULL;
}

int ofp_peer_way(struct ofp_endpoint *handle, uint32_t index, char *name, size_t size)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);
    const char *lane;

    if (result)
        return result;
    endpoint = endpoint->behind;
    lane = endpoint->info.provider;
    if (is_link(endpoint->domain))
        lane = choose_lane_name(endpoint, index, &result);
    else if (endpoint->av)
        ofpi_peer_get(endpoint, index, &result);
    if (!result)
        result = (size_t)snprintf(name, size, "%s", lane) < size ? 0 : -OFP_ETOOSMALL;
    ofpi_domain_leave(endpoint->domain);
    return result;
}

/*
 * The peer of an index. An endpoint of type MSG has one peer without an index; NULL with *error 0: it does not exist
 * yet.
 */
static const struct ofpi_peer *find_queried_peer(struct ofpi_endpoint *endpoint, uint32_t index, int *error)
{
    if (endpoint->connection)
        return endpoint->peer_capacity ? endpoint->peers[0] : NULL;
    return ofpi_peer_get(endpoint, index, error);
}

/* The name of a cipher suite of TLS 1.3 (RFC 8446, B.4). Another suite is named by its number. */
static void write_cipher_name(uint16_t cipher, char *name, size_t size)
{
    static const struct {
        uint16_t cipher;
        const char *name;
    } suites[] = {{0x1301, "TLS_AES_128_GCM_SHA256"},
                  {0x1302, "TLS_AES_256_GCM_SHA384"},
                  {0x1303, "TLS_CHACHA20_POLY1305_SHA256"}};

    name[0] = 0;
    if (cipher)
        snprintf(name, size, "0x%04x", cipher);
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
        if (suites[i].cipher == cipher)
            snprintf(name, size, "%s", suites[i].name);
}

int ofp_peer_security(struct ofp_endpoint *handle, uint32_t index, struct ofp_security *security)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);
    const struct ofpi_peer *peer;

    *security = (struct ofp_security){0};
    if (result)
        return result;
    endpoint = endpoint->behind;
    peer = find_queried_peer(endpoint, index, &result);
    if (peer && peer->base.state == OFP_PEER_UP) {
        bool proven = peer->base.proven;
        uint16_t cipher = peer->base.cipher;

        if (is_link(endpoint->domain))
            link_lanes_query_security(&peer->base, &proven, &cipher);
        security->proven = proven;
        security->encrypted = cipher != 0;
        write_cipher_name(cipher, security->cipher, sizeof(security->cipher));
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_region_ways(struct ofp_domain *handle, uint32_t id, void *lanes, size_t *length)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    const struct ofpi_region *region;
    size_t space = *length;
    int result = ofpi_domain_enter(domain);

    *length = 0;
    if (result)
        return result;
    region = ofpi_regions_find(&domain->regions, id);
    if (!region || !region->open) {
        result = -OFP_ENOREGION;
    } else if (is_link(domain)) {
        *length = space;
        result = link_region_encode_keys(handle, &region->base, lanes, length);
    }
    ofpi_domain_leave(domain);
    return result;
}

int ofp_remote_ways_learn(uint64_t key, const void *lanes, size_t length) { return link_keys_add(key, lanes, length); }

void ofp_remote_ways_forget(uint64_t key) { link_keys_remove(key); }
