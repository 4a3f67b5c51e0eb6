/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ENDPOINT_H
#define TCP_ENDPOINT_H

#include "objects.h"

int tcp_endpoint_drain(struct ofp_endpoint *base);
uint64_t tcp_peer_count_unsent(const struct ofp_peer *peer);
void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int tcp_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length);
int tcp_endpoint_get_other_address(struct ofp_endpoint *base, uint32_t number, void *address, size_t *length);
int tcp_endpoint_progress(struct ofp_endpoint *base);
bool tcp_endpoint_arm(struct ofp_endpoint *base);
void tcp_endpoint_disarm(struct ofp_endpoint *base);

#endif
