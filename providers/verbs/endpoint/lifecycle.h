/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected endpoints: opening, closing, progress, arming. */
#ifndef VERBS_LIFECYCLE_H
#define VERBS_LIFECYCLE_H

#include "objects.h"

int verbs_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
int verbs_endpoint_drain(struct ofp_endpoint *base);
uint64_t verbs_peer_count_unsent(const struct ofp_peer *peer);
void verbs_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int verbs_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length);
int verbs_endpoint_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
void verbs_endpoint_flush(struct ofp_endpoint *base);
int verbs_endpoint_progress(struct ofp_endpoint *base);
bool verbs_endpoint_arm(struct ofp_endpoint *base);
void verbs_endpoint_disarm(struct ofp_endpoint *base);

#endif
