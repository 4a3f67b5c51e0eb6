/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes ids and queue pairs in a thread of its own, without the domain's lock: rdma_destroy_id blocks until the
 * connection manager is done with the id.
 */
#ifndef VERBS_REAPER_H
#define VERBS_REAPER_H

#include "objects.h"

/*
 * Destroy a queue pair and its context, a struct verbs_qp_context from malloc. No asynchronous event can refer to the
 * context any more. The owner must outlive the call.
 */
void verbs_qp_close(struct ibv_qp *qp);

void verbs_reaper_open(struct verbs_domain *domain);
/*
 * Close an id later, and its queue pair `qp` (or NULL) before it. No events of the id are delivered any more. The
 * context of the queue pair, a struct verbs_qp_context from malloc, is freed too.
 */
void verbs_id_close_later(struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp);
/* Wait until all queue pairs that were passed to the reaper are closed. Ids may remain. */
void verbs_reaper_drain_pairs(struct verbs_domain *domain);
/* Wait until everything is closed, and end the thread. The caller holds no lock. */
void verbs_reaper_close(struct verbs_domain *domain);

#endif
