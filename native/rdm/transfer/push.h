/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of an announced message: it is called for, its payload is put or sent, it has ended. */
#ifndef OFPI_RDM_PUSH_H
#define OFPI_RDM_PUSH_H

#include "rdm/transfer/rdm.h"

void ofpi_rdm_pull_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
void ofpi_rdm_done_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
/* Fragments that had to wait. Returns how many left. */
int ofpi_rdm_pushes_resume(struct ofpi_rdm_path *path);

#endif
