/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma/atomic.h"

#include "base/core.h"

bool shm_atomic_is_ours(const struct shm_link *link, const struct ofp_transfer *transfer,
                        const struct shm_target *target, const struct iovec *pieces)
{
    /* The owner reports the reason of the refusal. */
    if (target->access & OFP_ACCESS_DEVICE_ATOMIC)
        return false;
    /*
     * Another version of ofipy may execute atomics on its own memory under locks. Nearly all operands have one piece.
     */
    if (!(link->segment.knows & SHM_KNOWS_ATOMICS) || transfer->iov_count != 1)
        return false;
    for (uint32_t i = 0; i < transfer->remote_count; i++)
        if (!shm_core->atomic_is_direct(transfer->op->datatype, pieces[i].iov_base))
            return false;
    return true;
}

void shm_atomic_execute(const struct ofp_transfer *transfer, const struct iovec *pieces)
{
    const struct ofp_operation *op = transfer->op;
    const char *operand = transfer->iov[0].iov_base, *compare = transfer->compare;
    char *result = transfer->result;

    for (uint32_t i = 0; i < transfer->remote_count; i++) {
        const struct ofp_remote_access piece = {.memory = pieces[i].iov_base, .length = pieces[i].iov_len};

        /* The core has checked operation, type and lengths. */
        shm_core->atomic_execute(&piece, op->op, op->atomic_op, op->datatype, operand, compare, result);
        operand += piece.length;
        compare = compare ? compare + piece.length : NULL;
        result = result ? result + piece.length : NULL;
    }
}
