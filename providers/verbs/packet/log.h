/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines about callers that got no path. Peers decide how many come, so each kind is logged at its level once a
 * second, and at DEBUG otherwise. The domain's lock is held in every function.
 */
#ifndef VERBS_PACKET_LOG_H
#define VERBS_PACKET_LOG_H

#include "packet/packet.h"

/* Log as a warning that the other end of this id has another key, or only one of the two has a key. */
void verbs_key_difference_log(struct verbs_rdm *rdm, struct rdma_cm_id *id, const char *why);
/* Log at INFO that the caller of this id is told "later", and count it. */
void verbs_deferral_log(struct verbs_rdm *rdm, struct rdma_cm_id *id, const char *why);

#endif
