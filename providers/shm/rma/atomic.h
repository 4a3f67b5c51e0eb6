/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on memory that its owner and we have mapped: the processor's instructions, which the executor of either side uses
 * there, make an element one step for both. What they cannot do so (larger elements, others than aligned ones) is the owner's.
 */
#ifndef SHM_ATOMIC_H
#define SHM_ATOMIC_H

#include "link/table.h"
#include "shm.h"

/* Whether we may: `pieces` is the memory of the operation, mapped here. */
bool shm_atomic_is_ours(const struct shm_link *link, const struct ofp_transfer *transfer,
                        const struct shm_target *target, const struct iovec *pieces);
void shm_atomic_execute(const struct ofp_transfer *transfer, const struct iovec *pieces);

#endif
