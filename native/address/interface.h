/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_INTERFACE_H
#define TCP_INTERFACE_H

#include "address/address.h"

#define TCP_INTERFACES_MAX 32

/* An interface's address; the port is 0. */
struct tcp_interface {
    char name[32];
    union tcp_address address;
    uint8_t prefix; /* bits of the network */
};
/* Whether an address is of this host, or rather of this network namespace. */
bool tcp_is_of_this_host(const union tcp_address *address);
/* Those that are up, the one that a packet to the world would leave by first, loopback last; `wanted`: a name or address. */
int tcp_interfaces_query(struct tcp_interface interfaces[TCP_INTERFACES_MAX], const char *wanted);

/* What stands for every address of this host: :: for both families, or 0.0.0.0 where there is no IPv6. */
void tcp_address_choose_any(union tcp_address *any);
/* Of the addresses that `any` stands for, the one to be known by first, then the others that other hosts can reach. */
int tcp_addresses_of(const union tcp_address *any, union tcp_address addresses[TCP_INTERFACES_MAX]);

#endif
