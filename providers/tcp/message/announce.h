/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ANNOUNCE_H
#define TCP_ANNOUNCE_H

#include "objects.h"

/* What an announced message has in its provider_data. */
enum { TCP_DATA_METHOD, TCP_DATA_ID, TCP_DATA_CONNECTION };
enum { TCP_METHOD_RENDEZVOUS, TCP_METHOD_PULL };

int tcp_message_announce(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                         struct tcp_header *header);
int tcp_announcement_arrived(struct tcp_connection *connection, const struct tcp_header *header);
/* The receiver of a message that we announced is there. False: the connection is over. */
bool tcp_pull_requested(struct tcp_connection *connection, const struct tcp_header *header);
/* It comes. NULL: nobody takes it any more, or (*wrong) it was not asked for. */
struct ofp_receive *tcp_pull_find_receive(struct tcp_connection *connection, const struct tcp_header *header,
                                          const char **wrong);
void tcp_pull_start(struct ofp_receive *receive);

#endif
