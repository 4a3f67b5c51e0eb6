/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_CONTROL_H
#define SHM_CONTROL_H

#include "shm.h"

struct shm_control {
    struct ofp_list node;
    uint8_t kind, flags;
    struct shm_control_fields fields;
};
/* End the next sleep soon: something waits that nobody wakes us for. */
void shm_retry_schedule(struct shm_endpoint *endpoint);
/* A slot without payload: now, or as soon as their ring has room. */
void shm_control_send(struct shm_link *link, uint8_t kind, uint8_t flags, const struct shm_control_fields *fields);
/* Send what waits. True: nothing waits any more. */
bool shm_controls_flush(struct shm_link *link);
void shm_controls_discard(struct shm_link *link);

#endif
