/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ANNOUNCE_H
#define TCP_ANNOUNCE_H

#include "objects.h"

/* What an announced message has in its provider_data. */
enum { TCP_DATA_WAY, TCP_DATA_ID, TCP_DATA_CONNECTION };
enum { TCP_WAY_RENDEZVOUS, TCP_WAY_PULL };

int tcp_announce(struct tcp_connection *connection, const struct ofp_transfer *transfer, struct tcp_header *header);
int tcp_announced(struct tcp_connection *connection, const struct tcp_header *header);
/* The receiver of a message that we announced is there. False: the connection is over. */
bool tcp_pull_requested(struct tcp_connection *connection, const struct tcp_header *header);
/* It comes. NULL: nobody takes it any more, or (*wrong) it was not asked for. */
struct ofp_receive *tcp_pulled(struct tcp_connection *connection, const struct tcp_header *header, const char **wrong);
void tcp_announced_start(struct ofp_receive *receive);

#endif
