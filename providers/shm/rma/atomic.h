/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on memory that the owner and the initiator have both mapped. Both sides use the same processor instructions,
 * so each element changes in one step for both. The owner executes atomics for which there is no such instruction
 * (larger or unaligned elements).
 */
#ifndef SHM_ATOMIC_H
#define SHM_ATOMIC_H

#include "link/table.h"
#include "shm.h"

/* Whether the initiator may execute the atomic itself. `pieces`: the memory of the operation, mapped here. */
bool shm_atomic_is_ours(const struct shm_link *link, const struct ofp_transfer *transfer,
                        const struct shm_target *target, const struct iovec *pieces);
void shm_atomic_execute(const struct ofp_transfer *transfer, const struct iovec *pieces);

#endif
