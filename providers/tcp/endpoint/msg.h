/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_MSG_H
#define TCP_MSG_H

#include "objects.h"

int tcp_msg_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
int tcp_msg_connect(struct ofp_peer *peer, char *text, size_t text_size);
int tcp_msg_accept(struct ofp_peer *peer, const void *data, size_t length);
int tcp_msg_shutdown(struct ofp_peer *peer);
/* Whether a shutdown has been requested and no operation is in flight; and the end of such a shutdown. */
bool tcp_msg_can_shut_down(const struct tcp_endpoint *endpoint);
void tcp_msg_end_shutdown(struct tcp_endpoint *endpoint);

#endif
