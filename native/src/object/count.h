/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting messages in the statistics page. The domain's lock is held, so each word has one writer at a time. */
#ifndef OFPI_COUNT_H
#define OFPI_COUNT_H

#include "base/page.h"
#include "object/peer.h"

static inline uint32_t ofpi_size_class_compute(uint32_t length) { return 31 ^ (uint32_t)__builtin_clz(length | 1); }
/* As the above for any length; the highest class counts all longer messages. */
static inline uint32_t ofpi_size_class_compute_any(uint64_t length)
{
    return length > UINT32_MAX ? OFPI_SIZE_CLASSES - 1 : ofpi_size_class_compute((uint32_t)length);
}

static inline enum ofp_protocol ofpi_protocol_of_message(const struct ofp_message *message)
{
    return message->extras & OFP_EXTRA_PROTOCOL && message->protocol < OFP_PROTOCOLS
               ? (enum ofp_protocol)message->protocol
               : OFP_PROTOCOL_EAGER;
}

/* `protocol` is a constant, or was checked; so is `class`. */
static inline void ofpi_message_count_sent(const struct ofpi_endpoint *endpoint, struct ofpi_peer_counts *peer,
                                           enum ofp_protocol protocol, uint32_t class, uint64_t length)
{
    struct ofpi_counts *counts = endpoint->counts;

    ofpi_sizes_find(counts, protocol)->counts[class]++;
    counts->bytes[protocol] += length;
    peer->messages_sent++;
    peer->bytes_sent += length;
}

/* A message with extras, or one that waited for its receive and does not name its peer, but its source. */
void ofpi_message_count_special(const struct ofpi_endpoint *endpoint, const struct ofp_message *message);

/* Without extras the message came whole, in one piece of memory, and so is shorter than 4 GiB. */
static inline void ofpi_message_count_received(const struct ofpi_endpoint *endpoint, const struct ofp_message *message)
{
    struct ofpi_counts *counts = endpoint->counts;
    struct ofpi_peer_counts *peer;

    if (__builtin_expect(message->extras || !message->peer, 0)) {
        ofpi_message_count_special(endpoint, message);
        return;
    }
    peer = ((const struct ofpi_peer *)message->peer)->counts;
    ofpi_sizes_find(counts, OFPI_SENT_PROTOCOLS)->counts[ofpi_size_class_compute((uint32_t)message->length)]++;
    counts->bytes[OFPI_SENT_PROTOCOLS] += message->length;
    peer->messages_received++;
    peer->bytes_received += message->length;
}

#endif
