/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's side of an announced message: the peer requests it, the payload is put or sent in fragments, the peer
 * reports the end.
 */
#ifndef OFPI_RDM_PUSH_H
#define OFPI_RDM_PUSH_H

#include "rdm/transfer/rdm.h"

void ofpi_rdm_pull_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
void ofpi_rdm_done_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
/* Send fragments that had to wait. Returns how many left. */
int ofpi_rdm_pushes_resume(struct ofpi_rdm_path *path);

#endif
