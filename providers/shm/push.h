/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider notes in a pending operation. */
#ifndef SHM_PUSH_H
#define SHM_PUSH_H

/* Places in ofp_pending.provider_data. */
enum shm_pending_data { SHM_PENDING_STATE, SHM_PENDING_PUSH };

/* Values of SHM_PENDING_STATE. */
enum shm_pending_state {
    SHM_PENDING_ANNOUNCED = 1, /* until DONE */
    SHM_PENDING_PUSHED = 2 /* the same, and fragments are on their way; SHM_PENDING_PUSH: its struct shm_push, or 0 */
};

#endif
