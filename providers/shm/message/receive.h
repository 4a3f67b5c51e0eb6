/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the ring; progress of an endpoint. */
#ifndef SHM_RECEIVE_H
#define SHM_RECEIVE_H

#include "shm.h"

int shm_endpoint_progress(struct ofp_endpoint *base);
/* Before the ring is replaced: handle every complete slot behind the head. */
void shm_ring_drain(struct shm_endpoint *endpoint);

#endif
