/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Uninserted peers: they called, and the program has not inserted their address. Nothing that the program does limits
 * their number. So those that are neither UP nor CONNECTING are in a list, and forget.c frees them beyond a bound. The
 * domain's lock is held.
 */
#ifndef OFPI_UNINSERTED_H
#define OFPI_UNINSERTED_H

#include "object/peer.h"

/* Idle ones that an endpoint keeps, so that a program may name them for a while after they have left. */
#define OFPI_UNINSERTED_LIMIT 1024u

/* The peer is new, and nobody has inserted it. */
void ofpi_uninserted_mark(struct ofpi_peer *peer);
/* The program has inserted its address, or it is about to be freed. */
void ofpi_uninserted_clear(struct ofpi_peer *peer);
/* The program has made something of this index that lasts, such as a group: as if it had inserted the address. */
void ofpi_uninserted_acquire(struct ofpi_endpoint *endpoint, uint32_t index);
/* The state of an uninserted peer has changed. */
void ofpi_uninserted_update(struct ofpi_peer *peer);
/* The peer is still needed: treat it as the one that became idle last. */
void ofpi_uninserted_defer(struct ofpi_peer *peer);

#endif
