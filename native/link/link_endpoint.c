/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ofipy/ofp.h"
#include "link/link_index.h"
#include "link/link_objects.h"
#include "link/link_progress.h"
#include "link/link_services.h"
#include "base/check.h"

/* Attempts to find a port whose number is also free as a name within the host. */
#define PORT_TRIES 16

/* ------------------------------------------------------------------------------------------------------------ opening */

/* Order the inner endpoints: first those within the host, then the networks, each in the order of the set. */
static void sort_inner_endpoints(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);
    uint32_t count = 0;

    for (int network = 0; network <= 1; network++) {
        for (uint32_t i = 0; i < endpoint->set->count; i++) {
            struct link_inner *inner = link_inner_find(outer, i);

            inner->outer = outer;
            inner->number = i;
            inner->is_network = !endpoint->set->parts[i].within_host;
            inner->base.private = (char *)inner + link_size_compute_aligned(sizeof(*inner));
            if (inner->is_network == network)
                endpoint->inners[count++] = inner;
        }
        if (!network)
            endpoint->near_count = count;
    }
    OFPI_CHECK(count == endpoint->set->count && endpoint->near_count <= count);
}

/* The order of opening: networks first, because their port is the service of all others. */
static struct link_inner *find_inner_by_turn(const struct link_endpoint *endpoint, uint32_t turn)
{
    return endpoint->inners[(endpoint->near_count + turn) % endpoint->set->count];
}

static void init_inner(struct ofp_endpoint *outer, uint32_t number)
{
    struct link_domain *domain = link_domain_of(outer->domain);
    const struct link_part *part = &domain->set->parts[number];
    struct link_inner *inner = link_inner_find(outer, number);

    memset(inner->base.private, 0, part->ops->endpoint_size);
    inner->base = (struct ofp_endpoint){
        .ops = part->ops,
        .services = &link_services,
        .domain = &domain->devices[number],
        .private = inner->base.private,
        .id = outer->id,
        .remote_events = outer->remote_events,
        .info = domain->devices[number].info,
        .min_multi_recv = outer->min_multi_recv,
        .unexpected_limit = outer->unexpected_limit,
        .bounce_size = outer->bounce_size,
        .listens_if_asked = !part->within_host,
        .local_key = !part->within_host && domain->has_local_key ? domain->local_key : NULL,
        .traffic_class = part->within_host ? 0 : outer->traffic_class,
    };
    memcpy(inner->base.identity, outer->identity, OFP_IDENTITY_SIZE);
}

static int open_inner(struct ofp_endpoint *outer, uint32_t number, const char *service, char *text, size_t text_size)
{
    struct ofp_endpoint *inner = &link_inner_find(outer, number)->base;
    char why[OFP_TEXT_MAX] = "";
    int result;

    init_inner(outer, number);
    result = inner->ops->open(inner, service, why, sizeof(why));
    if (result)
        snprintf(text, text_size, "%s: %.400s", inner->info->provider, why[0] ? why : ofp_strerror(result));
    return result;
}

/* Close the first `count` endpoints in the reverse order of opening. */
static void close_first_inner(const struct link_endpoint *endpoint, uint32_t count, uint64_t deadline)
{
    while (count-- > 0) {
        struct ofp_endpoint *inner = &find_inner_by_turn(endpoint, count)->base;

        inner->ops->close(inner, deadline);
    }
}

/* The port of a network device as a service; false if it has none. */
static bool find_port(const struct link_part *part, struct ofp_endpoint *inner, char *port, size_t size)
{
    char address[OFP_ADDRESS_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(address);
    const char *colon;

    if (part->within_host || inner->ops->name(inner, address, &length) != 0 ||
        part->provider->address_format(&part->info, address, length, text, sizeof(text)) != 0)
        return false;
    colon = strrchr(text, ':');
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) || atoi(colon + 1) <= 0)
        return false;
    snprintf(port, size, "%s", colon + 1);
    return true;
}

/* Open all inner endpoints, or none. */
static int open_all_inner(struct ofp_endpoint *outer, const char *service, char *text, size_t text_size)
{
    const struct link_endpoint *endpoint = link_endpoint_of(outer);
    char port[16];

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        uint32_t number = find_inner_by_turn(endpoint, i)->number;
        int result = open_inner(outer, number, service, text, text_size);

        if (result) {
            close_first_inner(endpoint, i, 0);
            return result;
        }
        if (!service &&
            find_port(&endpoint->set->parts[number], &link_inner_find(outer, number)->base, port, sizeof(port)))
            service = port;
    }
    return 0;
}

/*
 * Use the port of the first network on all other devices and within the host too, so that one address text reaches
 * the endpoint by any lane.
 */
static int open_inner_on_one_port(struct ofp_endpoint *outer, const char *service, char *text, size_t text_size)
{
    int result = -EADDRINUSE;

    for (int tries = 0; tries < PORT_TRIES && result == -EADDRINUSE; tries++) {
        result = open_all_inner(outer, service, text, text_size);
        if (service)
            break;
    }
    return result;
}

/* A user who names a service wants to be found: log from where. */
static void log_service_scope(const struct ofp_endpoint *outer, const char *service)
{
    for (uint32_t i = 0; i < link_endpoint_of(outer)->set->count; i++) {
        const struct link_inner *inner = link_inner_find(outer, i);

        if (inner->is_network && !inner->base.connects_only)
            return;
    }
    ofpi_log_write(
        OFP_LOG_INFO, LINK_NAME,
        "service %s is found by processes of this user on this host; by other hosts with node=, OFIPY_INTERFACE or "
        "OFIPY_AUTH_KEY_FILE",
        service);
}

int link_endpoint_open(struct ofp_endpoint *outer, const char *service, char *text, size_t text_size)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);
    int result;

    endpoint->set = link_domain_of(outer->domain)->set;
    endpoint->index = link_index_open();
    if (!endpoint->index)
        return -ENOMEM;
    sort_inner_endpoints(outer);
    /* The first one is a network, if there is any. */
    if (outer->traffic_class && !find_inner_by_turn(endpoint, 0)->is_network) {
        snprintf(text, text_size, "no device of this endpoint sends packets, so there is no traffic class to choose");
        result = -EOPNOTSUPP;
    } else {
        result = open_inner_on_one_port(outer, service, text, text_size);
    }
    if (result) {
        link_index_close(endpoint->index);
        endpoint->index = NULL;
        return result;
    }
    if (service)
        log_service_scope(outer, service);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ closing */

int link_endpoint_drain(struct ofp_endpoint *outer)
{
    const struct link_endpoint *endpoint = link_endpoint_of(outer);
    int result = 0;

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        struct ofp_endpoint *inner = &endpoint->inners[i]->base;

        if (inner->ops->drain && inner->ops->drain(inner) == -EAGAIN)
            result = -EAGAIN;
    }
    return result;
}

uint64_t link_peer_count_unsent(const struct ofp_peer *outer)
{
    const struct link_lane *lane = link_peer_of(outer)->chosen;

    return lane && lane->base.endpoint->ops->unsent ? lane->base.endpoint->ops->unsent(&lane->base) : 0;
}

bool link_peer_needs_flush(const struct ofp_peer *outer, struct ofp_remote_segment *there)
{
    const struct link_lane *lane = link_peer_of(outer)->chosen;

    return lane && lane->base.endpoint->ops->needs_flush && lane->base.endpoint->ops->needs_flush(&lane->base, there);
}

void link_endpoint_close(struct ofp_endpoint *outer, uint64_t deadline)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);

    close_first_inner(endpoint, endpoint->set->count, deadline);
    link_index_close(endpoint->index);
    endpoint->index = NULL;
}

/* ------------------------------------------------------------------------------------------------------------ address */

/* Add the addresses of one device until the writer is full. The first must fit. */
static int add_addresses(struct link_writer *writer, struct ofp_endpoint *inner)
{
    uint8_t address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    int result = inner->ops->name(inner, address, &length);

    if (!result)
        result = link_address_add(writer, inner->info->provider, address, length);
    for (uint32_t i = 0; !result && inner->ops->name_also; i++) {
        length = sizeof(address);
        if (inner->ops->name_also(inner, i, address, &length) != 0 ||
            link_address_add(writer, inner->info->provider, address, length) != 0)
            break;
    }
    return result;
}

int link_endpoint_get_address(struct ofp_endpoint *outer, void *address, size_t *length)
{
    const struct link_set *set = link_endpoint_of(outer)->set;
    struct link_writer writer;
    bool connects_only = false;
    int result;

    for (uint32_t i = 0; i < set->count; i++)
        connects_only |= link_inner_find(outer, i)->base.connects_only;
    result = link_writer_init(&writer, address, *length, link_domain_of(outer->domain)->host, outer->identity,
                              connects_only);
    for (uint32_t i = 0; i < set->count && !result; i++)
        result = add_addresses(&writer, &link_inner_find(outer, i)->base);
    if (!result)
        *length = writer.length;
    return result;
}

/* ------------------------------------------------------------------------------------------------------------- posting */

int link_transfer_post(struct ofp_endpoint *outer, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofp_peer *inner = &link_peer_of(peer)->chosen->base;

    OFPI_CHECK(peer->state == OFP_PEER_UP && inner->state == OFP_PEER_UP);
    /* An answer can follow: poll the networks in every round for a while. */
    if (link_inner_of(inner->endpoint)->is_network)
        link_endpoint_mark_busy(link_endpoint_of(outer));
    return inner->endpoint->ops->post(inner->endpoint, inner, transfer);
}

void link_endpoint_flush(struct ofp_endpoint *outer)
{
    const struct link_endpoint *endpoint = link_endpoint_of(outer);

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        struct ofp_endpoint *inner = &endpoint->inners[i]->base;

        if (inner->ops->flush)
            inner->ops->flush(inner);
    }
}
