/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_LISTEN_H
#define SHM_LISTEN_H

#include "shm.h"

int shm_listen(struct shm_endpoint *endpoint, const char *service, char *text, size_t text_size);
void shm_listen_close(struct shm_endpoint *endpoint);

#endif
