/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What TLS handshakes have cost that proved nothing, by the address that they came from. Each source has a credit; who has
 * spent it gets one percent of the time, until a peer of the source proves the key. So a flood takes no more, and members
 * of other sources do not wait for it. Sources share an account if their addresses have the same hash.
 */
#ifndef TCP_SOURCE_H
#define TCP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "address/address.h"

#define TCP_SOURCES 64

/* Zero at first. Guarded by the domain's lock. */
struct tcp_source {
    uint64_t spent;   /* nanoseconds of work, */
    uint64_t updated; /* as of this time */
};

/* The number of an address's account. Addresses of one IPv6 network of 64 bits share one. */
uint8_t tcp_source_find(const union tcp_address *address);
/* One step of a handshake has taken so many nanoseconds. */
void tcp_source_charge(struct tcp_source *source, uint64_t cost, uint64_t now);
/* When the source may cost something again: `now`, or later. */
uint64_t tcp_source_compute_turn(struct tcp_source *source, uint64_t now);
/* A peer of the source has proven the key. */
void tcp_source_clear(struct tcp_source *source);

#endif
