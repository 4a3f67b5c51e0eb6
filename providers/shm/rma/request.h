/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_REQUEST_H
#define SHM_REQUEST_H

#include "shm.h"

int shm_request_post(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer);
/* Request the rest of an operation that began as a direct one. */
void shm_request_resume(struct shm_link *link, struct ofp_pending *pending);
int shm_request_progress(struct shm_link *link, struct ofp_pending *pending);
bool shm_answer_arrived(struct shm_link *link, const struct shm_content *content);

#endif
