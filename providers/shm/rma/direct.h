/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_DIRECT_H
#define SHM_DIRECT_H

#include "shm.h"

int shm_remote_post(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer);
/* Progress of every remote operation that has not left completely. Returns events handled. */
int shm_remotes_progress(struct shm_endpoint *endpoint);
/* Whether one of them could advance now. */
bool shm_remotes_can_move(struct shm_endpoint *endpoint);
bool shm_notice_arrived(struct shm_link *link, const struct shm_content *content);

#endif
