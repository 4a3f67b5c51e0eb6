/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States of a queue pair. ofipy moves through them itself, since librdmacm would not set path MTU, service level,
 * partition and timers.
 */
#ifndef VERBS_STATE_H
#define VERBS_STATE_H

#include "objects.h"

/*
 * Receives may be posted then, and no peer has a right to memory here. The id is at the domain's device. Returns a
 * negative errno, as the next function.
 */
int verbs_qp_init(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp);
/* Connect to the peer that the connection manager knows. It may access the regions that are opened to peers. */
int verbs_qp_connect(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp,
                     uint8_t responder_resources, uint8_t initiator_depth);
/* Move the queue pair to the error state. It flushes everything it has. */
void verbs_qp_fail(struct ibv_qp *qp);

#endif
