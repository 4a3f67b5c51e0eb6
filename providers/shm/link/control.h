/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_CONTROL_H
#define SHM_CONTROL_H

#include "shm.h"

struct shm_control {
    struct ofp_list node;
    uint8_t kind, flags;
    struct shm_control_fields fields;
};
/* End the next sleep soon: an operation waits for space, and no peer wakes this endpoint for that. */
void shm_retry_schedule(struct shm_endpoint *endpoint);
/* Send a slot without payload, now or as soon as the peer's ring has space. */
void shm_control_send(struct shm_link *link, uint8_t kind, uint8_t flags, const struct shm_control_fields *fields);
/* Send the queued slots. True: the queue is empty. */
bool shm_controls_flush(struct shm_link *link);
void shm_controls_discard(struct shm_link *link);

#endif
