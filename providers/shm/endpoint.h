/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_ENDPOINT_H
#define SHM_ENDPOINT_H

#include "shm.h"

int shm_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
void shm_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int shm_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length);
bool shm_endpoint_arm(struct ofp_endpoint *base);
void shm_endpoint_disarm(struct ofp_endpoint *base);

#endif
