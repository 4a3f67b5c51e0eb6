/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_INTERFACE_H
#define TCP_INTERFACE_H

#include "address/address.h"

#define TCP_INTERFACES_MAX 32

/* An address of an interface; the port is 0. */
struct tcp_interface {
    char name[32];
    union tcp_address address;
    uint8_t prefix; /* length of the network prefix in bits */
};
/*
 * Whether an address belongs to this host, or more exactly to this network namespace. If the kernel does not list this
 * host's addresses, every address counts as local.
 */
bool tcp_is_of_this_host(const union tcp_address *address);
/* As tcp_is_of_this_host, but false if the kernel does not list the addresses. */
bool tcp_is_known_of_this_host(const union tcp_address *address);
/*
 * Query the addresses of interfaces that are up. The first is the source address of packets to other networks,
 * loopback comes last. `wanted`: the name or address of an interface, or NULL. Returns the count or a negative errno.
 */
int tcp_interfaces_query(struct tcp_interface interfaces[TCP_INTERFACES_MAX], const char *wanted);

/* The address for every address of this host: :: for both families, or 0.0.0.0 if there is no IPv6. */
void tcp_address_choose_any(union tcp_address *any);
/*
 * The addresses that `any` stands for: first the one by which the endpoint is known, then others that other hosts can
 * reach.
 */
int tcp_addresses_of(const union tcp_address *any, union tcp_address addresses[TCP_INTERFACES_MAX]);

#endif
