/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/atomic.h"

#include <errno.h>
#include <string.h>

#include "memory/slot.h"

static bool is_device_atomic(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype)
{
    if (datatype != OFP_INT64 && datatype != OFP_UINT64)
        return false;
    return atomic_op == (operation_code == OFP_COMPARE_ATOMIC ? OFP_ATOMIC_CSWAP : OFP_ATOMIC_SUM);
}

int verbs_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                       uint64_t *count)
{
    /* The core executes the atomics of RDM endpoints. */
    if (!(operation_code & OFP_DEVICE_ATOMIC) && info->ep_types & OFP_EP_RDM)
        return -ENOSYS;
    if (!(operation_code & OFP_DEVICE_ATOMIC) ||
        !is_device_atomic(operation_code & ~OFP_DEVICE_ATOMIC, atomic_op, datatype))
        return -EOPNOTSUPP;
    *count = 1;
    return 0;
}

int verbs_atomic_check(const struct verbs_port *port, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;

    if (!(op->flags & OFP_DEVICE_ATOMIC) || !verbs_port_has_atomics(port) ||
        !is_device_atomic(op->op, op->atomic_op, op->datatype))
        return -EOPNOTSUPP;
    if (transfer->remote_count != 1 || transfer->length != VERBS_ATOMIC_SIZE ||
        transfer->remote->offset % VERBS_ATOMIC_SIZE)
        return -EINVAL;
    return 0;
}

void verbs_atomic_fill_request(struct ibv_send_wr *request, const struct ofp_transfer *transfer)
{
    bool compares = transfer->op->op == OFP_COMPARE_ATOMIC;
    uint64_t operand;

    verbs_iov_gather((char *)&operand, transfer->iov, transfer->iov_count, sizeof(operand));
    request->opcode = compares ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    request->wr.atomic.remote_addr = transfer->remote->offset;
    request->wr.atomic.rkey = (uint32_t)transfer->remote->key;
    request->wr.atomic.swap = operand;
    request->wr.atomic.compare_add = operand;
    if (compares)
        memcpy(&request->wr.atomic.compare_add, transfer->compare, sizeof(operand));
}
