/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of peers that are ranks of a job. The domain's lock is held. */
#ifndef OFPI_DEPARTURE_H
#define OFPI_DEPARTURE_H

#include "object/peer.h"

struct ofpi_end {
    int error;
    int reason; /* provider_error; 0: no reason beyond the error */
};

/* The result of operations with a peer whose process has ended. */
struct ofpi_end ofpi_departure_end_build(const struct ofpi_peer *peer);
/*
 * Nanoseconds that receives which name an ended peer wait before they end. The end of the connection and the roster's
 * report of the departure come in any order: after the first, the second is expected soon. A transport that matches may
 * have messages that it has not matched with a receive yet.
 */
uint64_t ofpi_departure_pause_compute(const struct ofpi_peer *peer);
/*
 * Nanoseconds for which connecting is retried while nothing listens at the peer's address; 0: the peer is lost at once.
 * A rank of a job had started before its address was distributed, and is never restarted, so there is no reason to
 * retry.
 */
uint64_t ofpi_departure_patience_compute(const struct ofpi_peer *peer);

#endif
