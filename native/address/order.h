/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ORDER_H
#define TCP_ORDER_H

#include "address/interface.h"

/*
 * In which order a peer's addresses are to be tried from a host with these: their numbers. Returns how many: those that are this host's own too
 * are left out, unless all are.
 */
uint32_t tcp_addresses_sort(const union tcp_address *addresses, uint32_t count, const struct tcp_interface *own,
                            int own_count, uint32_t *order);

#endif
