/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_INBOUND_H
#define TCP_INBOUND_H

#include "objects.h"

/* Start a payload for `receive`. NULL: the payload is discarded. */
void tcp_inbound_start(struct tcp_connection *connection, const struct tcp_header *header, struct ofp_receive *receive);
/*
 * Describe the destination of the bytes that are missing, in at most `space` pieces. Returns the number of bytes that
 * have one.
 */
uint64_t tcp_inbound_fill_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t space, uint32_t *count);
/* The layout that the payload is received into; NULL: it is received into plain memory, or discarded. */
const struct ofp_layout *tcp_inbound_get_layout(const struct tcp_inbound *in);
/* Free the destination of an incomplete payload, because the connection ends. */
void tcp_inbound_discard(struct tcp_connection *connection);

#endif
