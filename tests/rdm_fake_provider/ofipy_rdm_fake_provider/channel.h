/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet channel over the exchange. */
#ifndef RDMFAKE_CHANNEL_H
#define RDMFAKE_CHANNEL_H

#include "exchange.h"

/* Kinds of channel, by what they have beside packets. */
enum rdmfake_kind { RDMFAKE_PACKETS, RDMFAKE_PUTS, RDMFAKE_GETS, RDMFAKE_KINDS };

/* Behind the module's part of an endpoint; the channel's `private`. */
struct rdmfake_endpoint {
    struct ofpi_channel *channel; /* set when it is open */
    struct rdmfake_port *port;
    struct ofp_watch doorbell;
    struct ofp_list buffers; /* struct ofpi_packet, posted */
    struct ofp_list moves;   /* struct late_move: made, but not told of yet; channel.c */
    uint64_t move_ns;        /* so much later than it is made a move ends; constant */
};

extern const struct ofp_core *rdmfake_core;
extern const struct ofpi_channel_ops rdmfake_channel_ops[RDMFAKE_KINDS];

/* Whose keys memory of a domain has. */
static inline const void *rdmfake_owner(const struct ofp_domain *domain) { return domain; }

#endif
