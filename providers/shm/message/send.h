/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting. */
#ifndef SHM_SEND_H
#define SHM_SEND_H

#include "shm.h"

int shm_operation_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
void shm_endpoint_flush(struct ofp_endpoint *base);

#endif
