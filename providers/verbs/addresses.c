/* SPDX-License-Identifier: BSD-3-Clause */
#include "addresses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address/resolve.h"
#include "datagram/address.h"
#include "device/place.h"

static bool is_of_datagrams(const struct ofp_info *info) { return info && info->ep_types & OFP_EP_DGRAM; }

/* `info` does not decide which kind the address is: addresses of the other kind are formatted and checked too. */
int verbs_address_check(const struct ofp_info *info, const void *address, size_t length)
{
    struct verbs_datagram_address datagram;
    union tcp_address parsed;

    (void)info;
    return verbs_datagram_address_decode(address, length, &datagram) == 0 ? 0
                                                                          : tcp_address_parse(address, length, &parsed);
}

int verbs_address_format(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    struct verbs_datagram_address datagram;

    (void)info;
    if (verbs_datagram_address_decode(address, length, &datagram) == 0)
        return verbs_datagram_address_format(&datagram, text, text_size);
    return tcp_address_format(address, length, text, text_size);
}

int verbs_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                          size_t *length, char *text, size_t text_size)
{
    struct verbs_datagram_address datagram;
    int result;

    if (!is_of_datagrams(info) && !verbs_service_is_of_datagrams(service))
        return tcp_address_resolve(info, node, service, address, length, text, text_size);
    if (*length < sizeof(datagram))
        return -OFP_ETOOSMALL;
    result = verbs_datagram_address_parse(node, service, &datagram, text, text_size);
    if (result)
        return result;
    *length = sizeof(datagram);
    memcpy(address, &datagram, sizeof(datagram));
    return 0;
}

int verbs_info_set_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    struct ofp_info by_ip = *info;
    union tcp_address address;
    int result;

    verbs_info_get_address(info, &address);
    tcp_info_set_address(&by_ip, &address);
    result = tcp_info_resolve_node(&by_ip, node, text, text_size);
    if (result)
        return result;
    tcp_info_get_address(&by_ip, &address);
    if (!is_of_datagrams(info) && !tcp_address_is_any(&address)) {
        *info = by_ip;
        return 0;
    }
    /* A datagram endpoint needs the one address of its device; "any" stands for all addresses of the host. */
    if (is_of_datagrams(info) && tcp_address_is_any(&address)) {
        snprintf(text, text_size, "%s: a datagram endpoint is at one address", node);
        return -EHOSTUNREACH;
    }
    tcp_info_choose(info);
    return 0;
}

int verbs_address_check_route(const struct ofp_info *info, const void *address, size_t length, char *text,
                              size_t text_size)
{
    struct verbs_datagram_address datagram;
    bool is_datagram = verbs_datagram_address_decode(address, length, &datagram) == 0;

    if (is_datagram == is_of_datagrams(info))
        return is_datagram ? 0 : tcp_address_check_reachable(info, address, length, text, text_size);
    snprintf(text, text_size, "this is the address of %s endpoint, and those of this domain are %s",
             is_datagram ? "a datagram (dgram)" : "a connected (msg)", is_datagram ? "connected" : "for datagrams");
    return -EHOSTUNREACH;
}

/* The key is the part of a datagram address that a received message contains of its sender. */
const void *verbs_address_get_key(const void *address, size_t *length, uint32_t number)
{
    if (*length == sizeof(struct verbs_datagram_address))
        *length = VERBS_DATAGRAM_KEY_SIZE;
    return number ? NULL : address;
}

enum ofp_address_relation verbs_address_compare(const void *known, size_t known_length, const void *given,
                                                size_t given_length)
{
    (void)known, (void)known_length, (void)given, (void)given_length;
    return OFP_ADDRESS_SAME;
}
