/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of received messages, by op. tcp_header_received starts a message, tcp_payload_received ends it when its
 * payload is complete. Both need a connection in state UP, and the domain's lock.
 */
#include "message/dispatch.h"

#include <errno.h>

#include "message/announce.h"
#include "message/atomic.h"
#include "connection/connection.h"
#include "connection/credit.h"
#include "stream/inbound.h"
#include "message/message.h"
#include "stream/pending.h"
#include "message/rendezvous.h"
#include "message/rma.h"
#include "stream/send.h"

/* Finish at once if the payload is empty. `good`: the connection is not over. */
static ssize_t payload_begun(struct tcp_connection *connection, bool good)
{
    if (!good)
        return -ECONNABORTED;
    if (!connection->in.left)
        tcp_payload_received(connection);
    return 0;
}

static ssize_t handle_data(struct tcp_connection *connection, const struct tcp_header *header)
{
    const char *wrong = NULL;
    struct ofp_receive *receive = header->op == TCP_PULLED ? tcp_pull_find_receive(connection, header, &wrong)
                                                           : tcp_rendezvous_find_receive(connection, header, &wrong);

    if (wrong) {
        tcp_connection_end_for_violation(connection, wrong);
        return -ECONNABORTED;
    }
    tcp_inbound_start(connection, header, receive);
    return payload_begun(connection, true);
}

static ssize_t handle_ack(struct tcp_connection *connection)
{
    if (tcp_acks_complete_first(connection, 0, 0))
        return 0;
    tcp_connection_end_for_violation(connection, "an acknowledgement of nothing");
    return -ECONNABORTED;
}

static bool handle_refusal(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_pending *first = OFP_CONTAINER_OF(connection->reads.next, struct tcp_pending, node);
    int error = header->words[0] <= INT16_MAX ? (int)header->words[0] : EIO;

    if (header->op_data == TCP_REFUSED_ACK && tcp_acks_complete_first(connection, OFP_EREMOTE, error))
        return true;
    if (header->op_data != TCP_REFUSED_ANSWER || ofp_list_empty(&connection->reads)) {
        tcp_connection_end_for_violation(connection, "a refusal of nothing");
        return false;
    }
    OFP_CHECK(connection->read_count > 0);
    connection->read_count--;
    ofp_list_remove(&first->node);
    ofp_transfer_complete(tcp_base_pending_of(first), OFP_EREMOTE, error);
    return true;
}

ssize_t tcp_header_received(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available)
{
    OFP_CHECK(connection->state == TCP_UP && connection->in.left == 0);
    if (TCP_UNLIKELY(connection->extended && !connection->hello_received && header->op != TCP_HELLO)) {
        tcp_connection_end_for_violation(connection, "no greeting");
        return -ECONNABORTED;
    }
    switch (header->op) {
    case TCP_TAG:
    case TCP_INTERNAL:
        return tcp_message_deliver(connection, header, payload, available);
    case TCP_MSG:
        if (tcp_header_is_ack(header))
            return handle_ack(connection);
        return tcp_message_deliver(connection, header, payload, available);
    case TCP_READ_REQ:
        return tcp_rma_read_requested(connection, header) ? 0 : -ECONNABORTED;
    case TCP_READ_RSP:
    case TCP_FETCHED:
        return payload_begun(connection, tcp_rma_read_answered(connection, header));
    case TCP_WRITE:
        return payload_begun(connection, tcp_rma_write_requested(connection, header));
    case TCP_TAG_RTS:
        return tcp_rendezvous_requested(connection, header);
    case TCP_CTS:
        tcp_rendezvous_cleared(connection, header->op_data);
        return 0;
    case TCP_DATA:
    case TCP_PULLED:
        return handle_data(connection, header);
    case TCP_ANNOUNCE:
        return tcp_announcement_arrived(connection, header);
    case TCP_PULL:
        return tcp_pull_requested(connection, header) ? 0 : -ECONNABORTED;
    case TCP_ATOMIC:
        return tcp_atomic_requested(connection, header, payload, available);
    case TCP_HELLO:
        return tcp_hello_received(connection, header) ? 0 : -ECONNABORTED;
    case TCP_CREDIT:
        return tcp_credit_granted(connection, header->words[0]) ? 0 : -ECONNABORTED;
    case TCP_REFUSED:
        return handle_refusal(connection, header) ? 0 : -ECONNABORTED;
    case TCP_GOODBYE:
        connection->goodbye = true;
        connection->ended = header->op_data;
        return 0;
    default:
        tcp_connection_end_for_violation(connection, "an operation out of place");
        return -ECONNABORTED;
    }
}

void tcp_payload_received(struct tcp_connection *connection)
{
    struct tcp_inbound *in = &connection->in;
    uint8_t target = in->target;
    uint16_t flags = in->flags;

    OFP_CHECK(connection->state == TCP_UP && in->left == 0);
    in->target = TCP_TARGET_NONE;
    switch (target) {
    case TCP_TARGET_RECEIVE:
        ofp_receive_complete(in->receive, 0, 0);
        break;
    case TCP_TARGET_READ:
        tcp_rma_read_completed(connection);
        return;
    case TCP_TARGET_WRITE:
        tcp_rma_write_completed(connection);
        break;
    case TCP_TARGET_ATOMIC:
        tcp_atomic_execute(connection, in->operands);
        return;
    default: /* discarded; the sender still gets its answer */
        if (TCP_UNLIKELY(in->refused)) {
            tcp_refusal_send(connection, TCP_REFUSED_ACK, in->refused);
            in->refused = 0;
            return;
        }
        break;
    }
    tcp_ack_send(connection, flags);
}
