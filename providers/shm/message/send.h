/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting. */
#ifndef SHM_SEND_H
#define SHM_SEND_H

#include "shm.h"

int shm_operation_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* The protocol of a message that is posted now, without flags. */
struct ofp_protocol_choice shm_send_choose_protocol(struct shm_link *link, uint64_t length);
void shm_endpoint_flush(struct ofp_endpoint *base);

#endif
