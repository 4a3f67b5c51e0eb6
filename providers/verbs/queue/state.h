/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a queue pair, which librdmacm would go through without asking for path MTU, service level, partition and timers. */
#ifndef VERBS_STATE_H
#define VERBS_STATE_H

#include "objects.h"

/* Receives may be posted. The id is at the domain's device; the queue pair is its own. A negative errno, as below. */
int verbs_qp_init(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp);
/* The other side is known to the connection manager: receive from it, send to it. */
int verbs_qp_connect(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp,
                     uint8_t responder_resources, uint8_t initiator_depth);
/* It takes nothing any more, from either side; what it has comes back flushed. */
void verbs_qp_fail(struct ibv_qp *qp);

#endif
