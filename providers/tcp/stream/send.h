/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SEND_H
#define TCP_SEND_H

#include "objects.h"

/* Completion levels that need an acknowledgement. */
#define TCP_LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)
/* Queue a header without payload, for the next flush. */
void tcp_header_send(struct tcp_connection *connection, const struct tcp_header *header);
/* Acknowledge a message, if its flags demand that. */
void tcp_ack_send(struct tcp_connection *connection, uint16_t flags);
void tcp_refusal_send(struct tcp_connection *connection, enum tcp_refused what, int error);
void tcp_goodbye_send(struct tcp_connection *connection, bool ended);
/*
 * Send a header and an operation's payload. `pending`: the operation, if it is retained already. Returns as
 * ofp_endpoint_ops.post.
 */
int tcp_payload_send(struct tcp_connection *connection, const struct tcp_header *header,
                     const struct ofp_transfer *transfer, struct ofp_pending *pending, bool unacked);

#endif
