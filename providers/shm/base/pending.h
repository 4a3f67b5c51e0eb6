/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's data of a pending operation. */
#ifndef SHM_PENDING_H
#define SHM_PENDING_H

/* Places in ofp_pending.provider_data. */
enum shm_pending_data {
    SHM_PENDING_STATE,
    SHM_PENDING_PUSH,                      /* messages: the struct shm_push, or 0 */
    SHM_PENDING_OFFSET = SHM_PENDING_PUSH, /* remote operations: bytes moved, or sent */
    SHM_PENDING_PARTS,                     /* parts sent and not answered */
    SHM_PENDING_ERROR                      /* of the first part that failed: provider_error << 32 | error */
};

/* Values of SHM_PENDING_STATE. */
enum shm_pending_state {
    SHM_PENDING_ANNOUNCED = 1, /* a message, until DONE */
    SHM_PENDING_PUSHED = 2,    /* a message whose fragments are in flight */
    SHM_PENDING_DIRECT = 3,    /* RMA that the initiator executes, piece by piece */
    SHM_PENDING_REQUESTED = 4  /* RMA or atomics that are requested of the peer, part by part */
};

#endif
