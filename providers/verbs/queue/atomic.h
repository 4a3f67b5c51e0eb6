/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's atomics: add, or compare and swap, one aligned 64-bit word, and fetch its old value. */
#ifndef VERBS_ATOMIC_H
#define VERBS_ATOMIC_H

#include "objects.h"

/* The provider's entry `atomic_query`. */
int verbs_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                       uint64_t *count);
/* Whether the device can execute it: 0 or a negative errno. */
int verbs_atomic_check(const struct verbs_port *port, const struct ofp_transfer *transfer);
/* Write operands and opcode. The caller has written the remote address. */
void verbs_atomic_fill_request(struct ibv_send_wr *request, const struct ofp_transfer *transfer);

#endif
