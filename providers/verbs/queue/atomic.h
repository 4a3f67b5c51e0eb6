/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's own atomics: it adds to, or compares and swaps, one aligned word of 64 bits, and fetches what was there. */
#ifndef VERBS_ATOMIC_H
#define VERBS_ATOMIC_H

#include "objects.h"

/* As the provider's entry `atomic_query`. */
int verbs_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                       uint64_t *count);
/* Whether the device can do it: 0 or a negative errno. */
int verbs_atomic_check(const struct verbs_port *port, const struct ofp_transfer *transfer);
/* What it adds or compares; where, the request says already. */
void verbs_atomic_fill_request(struct ibv_send_wr *request, const struct ofp_transfer *transfer);

#endif
