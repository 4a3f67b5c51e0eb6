/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry of a peer in the statistics page. The domain's lock is held. */
#ifndef OFPI_PEER_ENTRY_H
#define OFPI_PEER_ENTRY_H

#include "object/peer.h"

/* The peer is up: it gets an entry, unless it has one from an earlier incarnation, or none is left. */
void ofpi_peer_entry_open(struct ofpi_peer *peer);
/* The peer has no entry from now on; what it has counted is added to the endpoint's other peers. */
void ofpi_peer_entry_close(struct ofpi_peer *peer);

#endif
