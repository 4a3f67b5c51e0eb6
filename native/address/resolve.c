/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolve names of hosts and services, and check which addresses the endpoints of an info can have or reach. */
#include "address/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "address/interface.h"

int tcp_service_parse(const char *service, uint16_t *port, char *text, size_t text_size)
{
    char *end;
    unsigned long number;

    *port = 0;
    if (!service)
        return 0;
    number = strtoul(service, &end, 10);
    if (!*end && end != service && number <= UINT16_MAX) {
        *port = (uint16_t)number;
        return 0;
    }
    snprintf(text, text_size, "the service %s: a port number is meant, 0 to %d, or a name that begins with a letter",
             service, UINT16_MAX);
    return -EINVAL;
}

static const char *get_family_name(int family) { return family == AF_INET6 ? "IPv6" : "IPv4"; }

static bool is_literal(const char *node)
{
    struct in6_addr ignored;

    return inet_pton(AF_INET, node, &ignored) == 1 || strchr(node, ':');
}

/* Resolve a node to its addresses. A name gives only those of one family (AF_UNSPEC: of both). */
static int resolve_node(const char *node, int family, struct addrinfo **found, char *text, size_t text_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = is_literal(node) ? AF_UNSPEC : family};
    int error = getaddrinfo(node, NULL, &hints, found);

    if (!error)
        return 0;
    if (family != AF_UNSPEC && (error == EAI_NODATA || error == EAI_ADDRFAMILY))
        snprintf(text, text_size, "%s has no %s address", node, get_family_name(family));
    else
        snprintf(text, text_size, "%s: %s", node, error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    return -EHOSTUNREACH;
}

static void copy_entry_address(const struct addrinfo *entry, union tcp_address *address)
{
    memset(address, 0, sizeof(*address));
    memcpy(address, entry->ai_addr, entry->ai_addrlen < sizeof(*address) ? entry->ai_addrlen : sizeof(*address));
    tcp_address_clear_unused(address);
}

/*
 * An address that can be bound belongs to this host, or more exactly to this network namespace. `untried`: the result
 * if no descriptor is available.
 */
static bool is_bindable(const union tcp_address *address, bool untried)
{
    union tcp_address any_port = *address;
    int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool bound;

    if (fd < 0)
        return untried;
    tcp_address_set_port(&any_port, 0);
    bound = bind(fd, &any_port.any, (socklen_t)tcp_address_get_length(&any_port)) == 0;
    close(fd);
    return bound;
}

/* --------------------------------------------------------------------------------------------- addresses of peers */

static bool is_this_host(const char *node)
{
    char host[256] = "";

    if (!node || !node[0] || strcasecmp(node, "localhost") == 0)
        return true;
    return gethostname(host, sizeof(host) - 1) == 0 && strcasecmp(node, host) == 0;
}

/* The address by which endpoints of the info are known. */
static bool find_own_address(const struct ofp_info *info, union tcp_address *own)
{
    union tcp_address all[TCP_INTERFACES_MAX];

    tcp_info_get_address(info, own);
    if (!tcp_address_is_any(own))
        return true;
    if (tcp_addresses_of(own, all) <= 0)
        return false;
    *own = all[0];
    return true;
}

static bool is_of_both(const struct ofp_info *info)
{
    union tcp_address own;

    tcp_info_get_address(info, &own);
    return tcp_address_is_any(&own) && own.any.sa_family == AF_INET6;
}

static int find_node_address(const struct ofp_info *info, const char *node, union tcp_address *address, char *text,
                             size_t text_size)
{
    struct addrinfo *found;
    union tcp_address own;
    int error;

    if (info && !find_own_address(info, &own)) {
        snprintf(text, text_size, "this host has no address: no interface is up");
        return -EHOSTUNREACH;
    }
    if (info && is_this_host(node)) {
        *address = own;
        return 0;
    }
    error = resolve_node(node ? node : "localhost", info && !is_of_both(info) ? own.any.sa_family : AF_UNSPEC, &found,
                         text, text_size);
    if (error)
        return error;
    copy_entry_address(found, address);
    freeaddrinfo(found);
    /* /etc/hosts often gives the name of this host a loopback address, but endpoints use that of the interface. */
    if (info && node && !is_literal(node) && tcp_address_is_loopback(address))
        *address = own;
    return 0;
}

int tcp_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                        size_t *length, char *text, size_t text_size)
{
    union tcp_address found;
    uint16_t port;
    int error = tcp_service_parse(service, &port, text, text_size);

    if (!error)
        error = find_node_address(info, node, &found, text, text_size);
    if (error)
        return error;
    tcp_address_set_port(&found, port);
    if (*length < tcp_address_get_length(&found))
        return -OFP_ETOOSMALL;
    *length = tcp_address_get_length(&found);
    memcpy(address, &found, *length);
    return 0;
}

int tcp_address_check_reachable(const struct ofp_info *info, const void *address, size_t length, char *text,
                                size_t text_size)
{
    union tcp_address own, peer;
    char own_text[INET6_ADDRSTRLEN], peer_text[TCP_ADDRESS_TEXT];
    size_t ip_length;
    int error = tcp_address_parse(address, length, &peer);

    if (error)
        return error;
    tcp_info_get_address(info, &own);
    tcp_address_describe(&peer, peer_text);
    inet_ntop(own.any.sa_family, tcp_address_get_ip(&own, &ip_length), own_text, sizeof(own_text));
    if (peer.any.sa_family != own.any.sa_family && !is_of_both(info))
        snprintf(text, text_size, "%s is an %s address, and endpoints of the domain %s are at %s, which is %s",
                 peer_text, get_family_name(peer.any.sa_family), info->domain, own_text,
                 get_family_name(own.any.sa_family));
    else if (tcp_address_is_loopback(&own) && !tcp_address_is_loopback(&peer) && !is_bindable(&peer, true))
        snprintf(text, text_size, "%s is not of this host, and endpoints of the domain %s, at %s, reach nothing else",
                 peer_text, info->domain, own_text);
    else
        return 0;
    return -EHOSTUNREACH;
}

/* ----------------------------------------------------------------------------------------- addresses of this host */

/*
 * Choose an address of the node that endpoints of the info can have: their own, or any loopback address for a
 * loopback device.
 */
static bool choose_node_address(const struct addrinfo *list, union tcp_address *own)
{
    for (const struct addrinfo *entry = list; entry; entry = entry->ai_next) {
        union tcp_address address;

        copy_entry_address(entry, &address);
        if (tcp_address_is_any(own) && is_bindable(&address, false)) {
            *own = address;
            return true;
        }
        if (address.any.sa_family != own->any.sa_family)
            continue;
        if (tcp_address_has_same_ip(&address, own))
            return true;
        if (tcp_address_is_loopback(own) && tcp_address_is_loopback(&address) && is_bindable(&address, false)) {
            *own = address;
            return true;
        }
    }
    return false;
}

static void describe_foreign_node(const struct ofp_info *info, const char *node, const struct addrinfo *list,
                                  char *text, size_t text_size)
{
    union tcp_address first;
    char ip[INET6_ADDRSTRLEN];
    size_t length;

    copy_entry_address(list, &first);
    inet_ntop(first.any.sa_family, tcp_address_get_ip(&first, &length), ip, sizeof(ip));
    if (!is_bindable(&first, true))
        snprintf(text, text_size, "%s%s%s%s is not an address of this host", node, strcmp(ip, node) ? " (" : "",
                 strcmp(ip, node) ? ip : "", strcmp(ip, node) ? ")" : "");
    else
        snprintf(text, text_size, "%s is not an address of %s", node, info->domain);
}

int tcp_info_resolve_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    struct addrinfo *found;
    union tcp_address own, first;
    int error = resolve_node(node, AF_UNSPEC, &found, text, text_size);

    if (error)
        return error;
    tcp_info_get_address(info, &own);
    copy_entry_address(found, &first);
    if (tcp_address_is_any(&first)) {
        tcp_info_set_any(info, &first);
    } else if (choose_node_address(found, &own)) {
        tcp_info_set_address(info, &own);
    } else {
        describe_foreign_node(info, node, found, text, text_size);
        error = -EHOSTUNREACH;
    }
    if (!error)
        tcp_info_choose(info);
    freeaddrinfo(found);
    return error;
}
