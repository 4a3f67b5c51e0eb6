/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_LISTEN_H
#define SHM_LISTEN_H

#include "shm.h"

int shm_listener_open(struct shm_endpoint *endpoint, const char *service, char *text, size_t text_size);
void shm_listener_close(struct shm_endpoint *endpoint);

#endif
