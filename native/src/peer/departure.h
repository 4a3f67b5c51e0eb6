/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of peers that are ranks of a job. The domain's lock is held. */
#ifndef OFPI_DEPARTURE_H
#define OFPI_DEPARTURE_H

#include "object/peer.h"

struct ofpi_end {
    int error;
    int reason; /* provider_error; 0: the error says all */
};

/* Of operations with a peer that is gone. */
struct ofpi_end ofpi_departure_end_build(const struct ofpi_peer *peer);
/*
 * Nanoseconds that receives which name a peer that is gone wait before they end. The connection's end and the roster's news
 * come by different ways, in any order: a member whose connection has ended is about to be told of. A transport that matches
 * may hold messages that it has not given to a receive yet.
 */
uint64_t ofpi_departure_pause_compute(const struct ofpi_peer *peer);
/*
 * For so long a peer is asked again while nobody is at its address; 0: it is refused at once. The rank of a job was there when
 * its address was told, and nobody starts it again.
 */
uint64_t ofpi_departure_patience_compute(const struct ofpi_peer *peer);

#endif
