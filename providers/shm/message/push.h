/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_PUSH_H
#define SHM_PUSH_H

#include "shm.h"

bool shm_done_arrived(struct shm_link *link, const struct shm_content *content);
bool shm_clear_arrived(struct shm_link *link, const struct shm_content *content);
int shm_pushes_progress(struct shm_endpoint *endpoint);
/* Whether the next fragment could leave now. */
bool shm_pushes_can_move(struct shm_endpoint *endpoint);
void shm_pushes_free(struct shm_link *link);

#endif
