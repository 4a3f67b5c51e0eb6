/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RMA_H
#define TCP_RMA_H

#include "objects.h"

/* A write to a libfabric peer is finished when it is sent; the connection keeps the order. */
bool tcp_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there);
int tcp_rma_post(struct tcp_connection *connection, const struct ofp_transfer *transfer);
/* The peer reads from memory here. False: the connection is over. */
bool tcp_rma_read_requested(struct tcp_connection *connection, const struct tcp_header *header);
/* The peer answers a read of ours. False: the connection is over. */
bool tcp_rma_read_answered(struct tcp_connection *connection, const struct tcp_header *header);
/* The peer writes to memory here; connection->in is set up for the payload. False: the connection is over. */
bool tcp_rma_write_requested(struct tcp_connection *connection, const struct tcp_header *header);
void tcp_rma_write_completed(struct tcp_connection *connection);
void tcp_rma_read_completed(struct tcp_connection *connection);

#endif
