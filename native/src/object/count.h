/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting messages in the statistics page. The domain's lock is held, so each word has one writer at a time. */
#ifndef OFPI_COUNT_H
#define OFPI_COUNT_H

#include "base/page.h"
#include "object/peer.h"

static inline uint32_t ofpi_size_class_compute(uint64_t length)
{
    return length >> OFPI_SIZE_CLASSES ? OFPI_SIZE_CLASSES - 1 : 31 ^ (uint32_t)__builtin_clz((uint32_t)length | 1);
}

static inline enum ofp_protocol ofpi_protocol_of_message(const struct ofp_message *message)
{
    return message->extras & OFP_EXTRA_PROTOCOL && message->protocol < OFP_PROTOCOLS
               ? (enum ofp_protocol)message->protocol
               : OFP_PROTOCOL_EAGER;
}

/* `protocol` is a constant, or was checked. */
static inline void ofpi_message_count_sent(const struct ofpi_endpoint *endpoint, struct ofpi_peer_counts *peer,
                                           enum ofp_protocol protocol, uint64_t length)
{
    struct ofpi_counts *counts = endpoint->counts;

    ofpi_sizes_of(counts, protocol)->counts[ofpi_size_class_compute(length)]++;
    counts->bytes[protocol] += length;
    peer->messages_sent++;
    peer->bytes_sent += length;
}

/* A message that waited for its receive does not name its peer, but its source. */
static inline struct ofpi_peer_counts *ofpi_counts_of_source(const struct ofpi_endpoint *endpoint,
                                                             const struct ofp_message *message)
{
    const struct ofpi_peer *peer = (const struct ofpi_peer *)message->peer;

    if (__builtin_expect(!peer, 0))
        peer = ofpi_peer_find_at(endpoint, message->source);
    return peer ? peer->counts : &endpoint->counts->others;
}

static inline void ofpi_message_count_received(const struct ofpi_endpoint *endpoint, const struct ofp_message *message,
                                               uint64_t length)
{
    struct ofpi_peer_counts *peer = ofpi_counts_of_source(endpoint, message);
    struct ofpi_counts *counts = endpoint->counts;
    uint32_t row = OFPI_SENT_PROTOCOLS;

    if (__builtin_expect(message->extras, 0))
        row += ofpi_protocol_of_message(message);
    ofpi_sizes_of(counts, row)->counts[ofpi_size_class_compute(length)]++;
    counts->bytes[row] += length;
    peer->messages_received++;
    peer->bytes_received += length;
}

#endif
