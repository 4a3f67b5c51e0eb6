/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of ids, which may block until the connection manager has let go, and of queue pairs, off the domain's lock. */
#ifndef VERBS_REAPER_H
#define VERBS_REAPER_H

#include "objects.h"

void verbs_reaper_open(struct verbs_domain *domain);
/*
 * Nobody hears of the id any more; it goes when it can, its queue pair, where there is one, before, with the struct verbs_qp_context of
 * malloc that is its context.
 */
void verbs_id_close_later(struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp);
/* No queue pair is left of those that were given away, whatever ids wait for. */
void verbs_reaper_drain_pairs(struct verbs_domain *domain);
/* All of them are gone when this returns. No lock is held. */
void verbs_reaper_close(struct verbs_domain *domain);

#endif
