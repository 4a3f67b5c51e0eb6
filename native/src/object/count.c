/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/count.h"

void ofpi_message_count_special(const struct ofpi_endpoint *endpoint, const struct ofp_message *message)
{
    const struct ofpi_peer *peer =
        message->peer ? (const struct ofpi_peer *)message->peer : ofpi_peer_find_at(endpoint, message->source);
    struct ofpi_peer_counts *of_peer = peer ? peer->counts : &endpoint->counts->others;
    uint32_t row = OFPI_SENT_PROTOCOLS + ofpi_protocol_of_message(message);

    ofpi_sizes_find(endpoint->counts, row)->counts[ofpi_size_class_compute_any(message->length)]++;
    endpoint->counts->bytes[row] += message->length;
    of_peer->messages_received++;
    of_peer->bytes_received += message->length;
}
