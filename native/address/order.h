/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ORDER_H
#define TCP_ORDER_H

#include "address/interface.h"

/*
 * Sort the addresses of a peer in the order in which to try them from a host with these interfaces: `order` gets
 * their numbers. Returns the count. Addresses that this host has too are left out, unless it has all.
 */
uint32_t tcp_addresses_sort(const union tcp_address *addresses, uint32_t count, const struct tcp_interface *own,
                            int own_count, uint32_t *order);

#endif
