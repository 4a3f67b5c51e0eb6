/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics that the peer executes, in parts of one packet each: the initiator's side. */
#ifndef OFPI_RDM_REQUEST_H
#define OFPI_RDM_REQUEST_H

#include "rdm/transfer/rdm.h"

/* Send the first parts of an operation that was retained. */
void ofpi_rdm_remote_start(struct ofpi_rdm_path *path, struct ofp_pending *pending);
/* Send parts that had to wait. Returns how many left. */
int ofpi_rdm_remote_resume(struct ofpi_rdm_path *path);
void ofpi_rdm_answer_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

#endif
