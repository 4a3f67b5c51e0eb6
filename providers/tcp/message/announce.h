/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ANNOUNCE_H
#define TCP_ANNOUNCE_H

#include "objects.h"

/* Indexes of ofp_message.provider_data for an announced message, and the methods of fetching one. */
enum { TCP_DATA_METHOD, TCP_DATA_ID, TCP_DATA_CONNECTION };
enum { TCP_METHOD_RENDEZVOUS, TCP_METHOD_PULL };

int tcp_message_announce(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                         struct tcp_header *header);
int tcp_announcement_arrived(struct tcp_connection *connection, const struct tcp_header *header);
/* The peer pulls a message that we announced. False: the connection is over. */
bool tcp_pull_requested(struct tcp_connection *connection, const struct tcp_header *header);
/* The receive that a pulled payload is for. NULL: it was cancelled, or (*wrong is set) the payload was not pulled. */
struct ofp_receive *tcp_pull_find_receive(struct tcp_connection *connection, const struct tcp_header *header,
                                          const char **wrong);
void tcp_pull_start(struct ofp_receive *receive);

#endif
