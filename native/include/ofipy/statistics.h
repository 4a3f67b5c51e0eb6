/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint counts these since it was opened; ofp_endpoint_statistics. */
#ifndef OFIPY_STATISTICS_H
#define OFIPY_STATISTICS_H

#include <stdint.h>

struct ofp_endpoint_statistics {
    uint64_t sends, receives, reads, writes, atomics, flushes; /* operations finished */
    uint64_t bytes_sent, bytes_received, errors;
    uint64_t posted_receives, unexpected_messages, unexpected_bytes, announced_messages; /* now */
    uint64_t linear_searches;  /* masks beyond the indexed ones */
    uint64_t backlog, pending; /* operations now: not yet accepted by the transport, and in flight */
    uint64_t peers_up, peers_lost;
    uint64_t sleeps, wakeups, progress_calls;
    uint64_t registrations, registrations_reused, registrations_dropped; /* of memory, for operations of the domain */
    uint64_t messages_dropped;                                           /* type DGRAM: discarded for lack of space */
    uint64_t messages_mapped, messages_pipelined,
        messages_attached;                             /* received announced messages, by enum ofp_moved */
    uint32_t packet_buffers, packet_buffers_reclaimed; /* of the domain's endpoints: now, and lost ones that returned */
    uint64_t packed; /* operations whose memory in many pieces was packed into one buffer for the transport */
};

#endif
