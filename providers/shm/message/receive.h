/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the ring, and progress. */
#ifndef SHM_RECEIVE_H
#define SHM_RECEIVE_H

#include "shm.h"

int shm_endpoint_progress(struct ofp_endpoint *base);
/* Before the ring is given up: handle every slot behind the head that is whole. */
void shm_ring_drain(struct shm_endpoint *endpoint);

#endif
