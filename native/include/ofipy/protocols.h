/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the payload of messages travels, and why. Providers choose; statistics count what they have chosen. The
 * conventions are those of ofp.h.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_PROTOCOLS_H
#define OFIPY_PROTOCOLS_H

#include <stdint.h>

struct ofp_endpoint;

enum ofp_protocol {
    OFP_PROTOCOL_EAGER,     /* with the message: in the slot of a ring, in the stream, in the packet */
    OFP_PROTOCOL_BOUNCE,    /* with the message, in a buffer of shared memory */
    OFP_PROTOCOL_ANNOUNCED, /* after a receive has matched the message */
    /* Received messages that were announced, where the receiver knows more: by enum ofp_moved. */
    OFP_PROTOCOL_MAPPED,
    OFP_PROTOCOL_PIPELINED,
    OFP_PROTOCOL_ATTACHED,
    OFP_PROTOCOLS
};
/* In rows only: the transport matches messages, and chooses for itself. */
#define OFP_PROTOCOL_OFFLOADED 6

enum ofp_protocol_reason {
    OFP_PROTOCOL_BY_THRESHOLD, /* the length is below, or above, a limit */
    OFP_PROTOCOL_BY_COST,      /* it costs the least of those that are possible, as measured */
    OFP_PROTOCOL_BY_MEMORY,    /* where memory is: mapped by the receiver, or short at the receiver or here */
    OFP_PROTOCOL_FORCED        /* nothing else is possible: by a setting, the system or the transport */
};

/* Messages from `from` to `to` bytes. Both are inclusive. */
struct ofp_protocol_row {
    uint64_t from, to;
    uint64_t cost;     /* ns that a message of `from` bytes is expected to take; 0: not measured */
    uint32_t protocol; /* enum ofp_protocol, or OFP_PROTOCOL_OFFLOADED */
    uint32_t reason;   /* enum ofp_protocol_reason */
    uint32_t received; /* 1: announced messages of the peer, whose payload this side moves; 0: messages to the peer */
    uint32_t shared;   /* 1: with `received`, the peer's memory is mapped here (ofp_region_allocate); 0: it is not */
};
#define OFP_PROTOCOL_ROWS_MAX 64

/*
 * How messages would travel that are posted, or received, now: without flags, and with memory in one piece. Rows of sent
 * messages come first, each kind in the order of lengths. Returns the number of rows, at most `max`; 0 while the peer is
 * not connected. An endpoint of type MSG has one peer, and ignores `peer`.
 */
int ofp_peer_protocols(struct ofp_endpoint *endpoint, uint32_t peer, struct ofp_protocol_row *rows, uint32_t max);

#endif
