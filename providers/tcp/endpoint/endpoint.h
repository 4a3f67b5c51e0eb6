/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ENDPOINT_H
#define TCP_ENDPOINT_H

#include "objects.h"

int tcp_endpoint_drain(struct ofp_endpoint *base);
uint64_t tcp_peer_unsent(const struct ofp_peer *peer);
void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int tcp_endpoint_name(struct ofp_endpoint *base, void *address, size_t *length);
int tcp_endpoint_name_also(struct ofp_endpoint *base, uint32_t number, void *address, size_t *length);
int tcp_progress(struct ofp_endpoint *base);
bool tcp_arm(struct ofp_endpoint *base);
void tcp_disarm(struct ofp_endpoint *base);

#endif
