/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Socket addresses as libfabric returns them: 16 bytes for IPv4, 28 for IPv6. Every unused byte is zero, because the
 * wire protocol compares whole addresses.
 */
#ifndef TCP_ADDRESS_H
#define TCP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/types.h"

#define TCP_ADDRESS_TEXT 64

union tcp_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static inline size_t tcp_address_get_length(const union tcp_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}
static inline uint16_t tcp_address_get_port(const union tcp_address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}
static inline void tcp_address_set_port(union tcp_address *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons(port);
    else
        address->v4.sin_port = htons(port);
}
bool tcp_address_has_same_ip(const union tcp_address *a, const union tcp_address *b);
bool tcp_address_is_loopback(const union tcp_address *address);
/* Replace the IP by the loopback address of its family. */
void tcp_address_set_loopback(union tcp_address *address);
/* Whether it is 0.0.0.0 or ::, which stand for every address of this host. */
bool tcp_address_is_any(const union tcp_address *address);
/* The bytes of the IP in network order. */
const uint8_t *tcp_address_get_ip(const union tcp_address *address, size_t *length);
/* Decode untrusted bytes: 0, or -EINVAL. */
int tcp_address_parse(const void *bytes, size_t length, union tcp_address *address);
/* Compare IP, then port, as unsigned numbers. Two peers decide crossing requests by this order. */
int tcp_address_compare(const union tcp_address *a, const union tcp_address *b);
/* Clear the unused fields that a kernel call has left in an address, and convert an IPv4-mapped address to IPv4. */
void tcp_address_clear_unused(union tcp_address *address);
/* "192.0.2.1:7471", "[2001:db8::1]:7471" */
int tcp_address_format(const void *bytes, size_t length, char *text, size_t text_size);
static inline void tcp_address_describe(const union tcp_address *address, char text[TCP_ADDRESS_TEXT])
{
    tcp_address_format(address, tcp_address_get_length(address), text, TCP_ADDRESS_TEXT);
}

/* The IP of the endpoints of an info, in two words of its provider_data. */
void tcp_info_set_address(struct ofp_info *info, const union tcp_address *address);
void tcp_info_get_address(const struct ofp_info *info, union tcp_address *address);
/* Set the IP of an info to every address: 0.0.0.0 or ::. */
void tcp_info_set_any(struct ofp_info *info, const union tcp_address *any);
/* The user has requested this address; otherwise it was offered as the best one. */
static inline void tcp_info_choose(struct ofp_info *info) { info->provider_data[2] = 1; }
static inline bool tcp_info_is_chosen(const struct ofp_info *info) { return info->provider_data[2] != 0; }

#endif
