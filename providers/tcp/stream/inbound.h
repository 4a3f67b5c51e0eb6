/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_INBOUND_H
#define TCP_INBOUND_H

#include "objects.h"

/* Begin with a payload: its place, or none. */
void tcp_inbound_start(struct tcp_connection *connection, const struct tcp_header *header, struct ofp_receive *receive);
/* The places of what is still to come, at most `room`. Returns how many bytes have one. */
uint64_t tcp_inbound_fill_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t space, uint32_t *count);
/* The connection ends in the middle of something. */
void tcp_inbound_discard(struct tcp_connection *connection);

#endif
