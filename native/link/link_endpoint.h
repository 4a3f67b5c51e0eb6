/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint made of inner endpoints: the functions of ofp_endpoint_ops that act on all of them. */
#ifndef LINK_ENDPOINT_H
#define LINK_ENDPOINT_H

#include "ofipy/provider.h"

int link_endpoint_open(struct ofp_endpoint *outer, const char *service, char *text, size_t text_size);
int link_endpoint_drain(struct ofp_endpoint *outer);
uint64_t link_peer_count_unsent(const struct ofp_peer *outer);
bool link_peer_needs_flush(const struct ofp_peer *outer, struct ofp_remote_segment *there);
void link_endpoint_close(struct ofp_endpoint *outer, uint64_t deadline);
int link_endpoint_get_address(struct ofp_endpoint *outer, void *address, size_t *length);
int link_transfer_post(struct ofp_endpoint *outer, struct ofp_peer *peer, const struct ofp_transfer *transfer);
void link_endpoint_flush(struct ofp_endpoint *outer);

#endif
