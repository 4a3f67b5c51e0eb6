/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: their texts, libfabric's numbers for them, and the table from a number to the peer. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* ---------------------------------------------------------------------------------------------- numbers and peers */

static uint32_t compute_slot(const struct bridge_endpoint *endpoint, uint64_t address)
{
    return (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 32) & (endpoint->source_capacity - 1);
}

static void insert_source(struct bridge_endpoint *endpoint, uint64_t address, struct ofp_peer *peer)
{
    uint32_t slot = compute_slot(endpoint, address);

    OFP_CHECK(endpoint->source_count < endpoint->source_capacity);
    while (endpoint->sources[slot].peer)
        slot = (slot + 1) & (endpoint->source_capacity - 1);
    endpoint->sources[slot] = (struct bridge_source){address, peer};
}

/* Make space for one more source, with half of the slots free. */
static int grow_sources(struct bridge_endpoint *endpoint)
{
    uint32_t old_capacity = endpoint->source_capacity;
    struct bridge_source *old = endpoint->sources, *sources;

    if (endpoint->source_count < old_capacity / 2)
        return 0;
    sources = calloc(old_capacity ? old_capacity * 2 : 16, sizeof(*sources));
    if (!sources)
        return -ENOMEM;
    endpoint->sources = sources;
    endpoint->source_capacity = old_capacity ? old_capacity * 2 : 16;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].peer)
            insert_source(endpoint, old[i].address, old[i].peer);
    free(old);
    return 0;
}

static struct bridge_source *find_source(const struct bridge_endpoint *endpoint, uint64_t address)
{
    if (!endpoint->source_capacity)
        return NULL;
    for (uint32_t slot = compute_slot(endpoint, address); endpoint->sources[slot].peer;
         slot = (slot + 1) & (endpoint->source_capacity - 1))
        if (endpoint->sources[slot].address == address)
            return &endpoint->sources[slot];
    return NULL;
}

/* Entries behind the freed slot move up, so that no search stops early. Removing the last source frees the table. */
static void remove_source(struct bridge_endpoint *endpoint, struct bridge_source *source)
{
    uint32_t mask = endpoint->source_capacity - 1;

    OFP_CHECK(endpoint->source_count > 0 && source->peer);
    source->peer = NULL;
    for (uint32_t slot = (uint32_t)(source - endpoint->sources + 1) & mask; endpoint->sources[slot].peer;
         slot = (slot + 1) & mask) {
        struct bridge_source moved = endpoint->sources[slot];

        endpoint->sources[slot].peer = NULL;
        insert_source(endpoint, moved.address, moved.peer);
    }
    if (--endpoint->source_count == 0) {
        free(endpoint->sources);
        endpoint->sources = NULL;
        endpoint->source_capacity = 0;
    }
}

struct ofp_peer *bridge_peer_find(const struct bridge_endpoint *endpoint, uint64_t address)
{
    const struct bridge_source *source = address == LF_ADDR_NOTAVAIL ? NULL : find_source(endpoint, address);

    return source ? source->peer : NULL;
}

int bridge_peer_open(struct ofp_peer *peer)
{
    struct bridge_endpoint *endpoint = bridge_endpoint_of(peer->endpoint);
    struct bridge_peer *self = bridge_peer_of(peer);
    struct bridge_source *earlier;
    int result = grow_sources(endpoint);

    if (result)
        return result;
    result = endpoint->av->ops->insert(endpoint->av, peer->address, 1, &self->address, 0, NULL);
    if (result != 1)
        return result < 0 ? -bridge_error_convert(result) : -EINVAL;
    self->known = true;
    /* If an address was removed and inserted again, the new peer object replaces the old one. */
    earlier = find_source(endpoint, self->address);
    if (earlier) {
        earlier->peer = peer;
        return 0;
    }
    insert_source(endpoint, self->address, peer);
    endpoint->source_count++;
    return 0;
}

/* libfabric's providers connect when the first message needs a connection. */
int bridge_peer_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    const struct bridge_endpoint *endpoint = bridge_endpoint_of(peer->endpoint);
    struct bridge_peer *self = bridge_peer_of(peer);

    (void)text;
    (void)text_size;
    /* A peer that the core marked lost has no valid number, but libfabric still uses the same one. */
    for (uint32_t slot = 0; !self->known && slot < endpoint->source_capacity; slot++) {
        if (endpoint->sources[slot].peer == peer) {
            self->address = endpoint->sources[slot].address;
            self->known = true;
        }
    }
    if (!self->known)
        return -EADDRNOTAVAIL;
    ofp_peer_up(peer);
    return 0;
}

void bridge_peer_close(struct ofp_peer *peer)
{
    struct bridge_endpoint *endpoint = bridge_endpoint_of(peer->endpoint);
    struct bridge_peer *self = bridge_peer_of(peer);
    struct bridge_source *source = find_source(endpoint, self->address);

    if (!source || source->peer != peer)
        return;
    remove_source(endpoint, source);
    if (endpoint->av)
        endpoint->av->ops->remove(endpoint->av, &self->address, 1, 0);
}

/* ------------------------------------------------------------------------------------------------ texts and addresses */

static int copy_address(const void *from, size_t from_length, void *address, size_t *length)
{
    size_t space = *length;

    if (!from)
        return -EHOSTUNREACH;
    *length = from_length;
    if (from_length > space)
        return -OFP_ETOOSMALL;
    memcpy(address, from, from_length);
    return 0;
}

/* Resolve an IP address in digits, which stands for itself with any interface. -EAGAIN: `node` is none. */
static int resolve_literal(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int error;

    if (info->address_format == OFP_ADDRESS_OPAQUE || !node || !node[0] || !service ||
        getaddrinfo(node, service, &hints, &found))
        return -EAGAIN;
    error = copy_address(found->ai_addr, found->ai_addrlen, address, length);
    freeaddrinfo(found);
    return error;
}

static bool is_this_host(const char *node)
{
    return !node || !node[0] || strcmp(node, "localhost") == 0 || strcmp(node, "127.0.0.1") == 0 ||
           strcmp(node, "::1") == 0;
}

/* A peer on this host with this service listens at the address that this info's own endpoints would have. */
static int resolve_own_host(const struct bridge_library *library, const struct ofp_info *info, const char *service,
                            void *address, size_t *length)
{
    char node[INET6_ADDRSTRLEN];
    struct lf_info *found;
    bool named;
    int error = bridge_info_find(library, info, NULL, NULL, 0, &found);

    if (error)
        return error;
    named = bridge_node_format_own(found, node, sizeof(node));
    library->freeinfo(found);
    error = bridge_info_find(library, info, named ? node : NULL, service, LF_GETINFO_SOURCE, &found);
    if (error)
        return error;
    error = copy_address(found->src_addr, found->src_addrlen, address, length);
    library->freeinfo(found);
    return error;
}

static int resolve_remote_host(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                               const char *service, void *address, size_t *length)
{
    struct lf_info *found;
    int error = bridge_info_find_remote(library, info, node, service, &found);

    if (error)
        return error;
    error = copy_address(found->dest_addr, found->dest_addrlen, address, length);
    library->freeinfo(found);
    return error;
}

int bridge_service_check(const struct ofp_info *info, const char *service, char *text, size_t text_size)
{
    long port;
    char *end;

    if (info->address_format == OFP_ADDRESS_OPAQUE || !service)
        return 0;
    port = strtol(service, &end, 10);
    if (*end || (end != service && port >= 0 && port <= UINT16_MAX))
        return 0;
    snprintf(text, text_size, "%s: service %s; a port number is meant, 0 to 65535", info->provider, service);
    return -EINVAL;
}

int bridge_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length, char *text, size_t text_size)
{
    const struct bridge_library *library = bridge_library_get(text, text_size);
    int error;

    if (!library || !info)
        return -ENOENT;
    error = bridge_service_check(info, service, text, text_size);
    if (error)
        return error;
    error = resolve_literal(info, node, service, address, length);
    if (error != -EAGAIN)
        return error;
    if (is_this_host(node))
        error = resolve_own_host(library, info, service, address, length);
    else if (info->address_format == OFP_ADDRESS_OPAQUE && !(info->caps & OFP_CAP_REMOTE_COMM) && !strchr(node, ':'))
        /* The library would accept any name. A name with a colon is no host's, but a formatted address. */
        error = -EHOSTUNREACH;
    else
        error = resolve_remote_host(library, info, node, service, address, length);
    if (!error || error == -OFP_ETOOSMALL)
        return error;
    snprintf(text, text_size, "%s finds no way to %s, service %s: %s", info->provider, node ? node : "this host",
             service ? service : "(none)", library->strerror(-error));
    return -EHOSTUNREACH;
}

/* A provider may use both kinds of IP address. */
sa_family_t bridge_address_find_family(const struct ofp_info *info, const void *address, size_t length)
{
    sa_family_t family;

    if (!info || info->address_format == OFP_ADDRESS_OPAQUE || length < sizeof(family))
        return AF_UNSPEC;
    memcpy(&family, address, sizeof(family));
    if ((family == AF_INET && length == sizeof(struct sockaddr_in)) ||
        (family == AF_INET6 && length == sizeof(struct sockaddr_in6)))
        return family;
    return AF_UNSPEC;
}

int bridge_address_check(const struct ofp_info *info, const void *address, size_t length)
{
    if (!info || !length)
        return -EINVAL;
    return info->address_format == OFP_ADDRESS_OPAQUE || bridge_address_find_family(info, address, length) != AF_UNSPEC
               ? 0
               : -EINVAL;
}

/* Printable text is copied; other addresses are written in hexadecimal. */
static int format_opaque(const char *address, size_t length, char *text, size_t text_size)
{
    size_t printable = 0, used = 0;
    const char *scheme_end;

    while (printable < length && address[printable] > ' ' && address[printable] <= '~')
        printable++;
    if (printable + 1 == length && !address[printable]) {
        scheme_end = strstr(address, "://");
        return snprintf(text, text_size, "%s", scheme_end ? scheme_end + 3 : address) < (int)text_size ? 0
                                                                                                       : -OFP_ETOOSMALL;
    }
    if (text_size < 2 * length + 3)
        return -OFP_ETOOSMALL;
    text[used++] = '[';
    for (size_t i = 0; i < length; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%02x", (unsigned char)address[i]);
    snprintf(text + used, text_size - used, "]");
    return 0;
}

int bridge_address_format(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    char host[INET6_ADDRSTRLEN] = "";
    sa_family_t family = bridge_address_find_family(info, address, length);
    int written;

    if (family == AF_INET) {
        memcpy(&v4, address, sizeof(v4));
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
        written = snprintf(text, text_size, "%s:%u", host, ntohs(v4.sin_port));
    } else if (family == AF_INET6) {
        memcpy(&v6, address, sizeof(v6));
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
        written = snprintf(text, text_size, "[%s]:%u", host, ntohs(v6.sin6_port));
    } else {
        return format_opaque(address, length, text, text_size);
    }
    return (size_t)written < text_size ? 0 : -OFP_ETOOSMALL;
}
