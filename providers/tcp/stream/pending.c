/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion of our operations: when the kernel has accepted their bytes, or when the peer has acknowledged them.
 * Answers to reads complete in rma.c.
 */
#include "stream/pending.h"

void tcp_pending_sent(struct ofp_pending *pending)
{
    tcp_pending_of(pending)->sent = true;
    if (!tcp_pending_of(pending)->unacked)
        ofp_transfer_complete(pending, 0, 0);
}

bool tcp_acks_complete_first(struct tcp_connection *connection, int error, int provider_error)
{
    struct tcp_pending *first = OFP_CONTAINER_OF(connection->acks.next, struct tcp_pending, node);

    if (ofp_list_empty(&connection->acks) || !first->sent)
        return false;
    OFP_CHECK(first->unacked);
    ofp_list_remove(&first->node);
    ofp_transfer_complete(tcp_base_pending_of(first), error, provider_error);
    return true;
}
