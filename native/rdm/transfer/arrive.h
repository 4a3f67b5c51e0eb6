/* SPDX-License-Identifier: BSD-3-Clause */
/* What each packet means. */
#ifndef OFPI_RDM_ARRIVE_H
#define OFPI_RDM_ARRIVE_H

#include "rdm/transfer/rdm.h"

/* A packet on a path of ours that is not dropped; its buffer is posted again, now or when it has been dealt with. */
void ofpi_rdm_packet_handle(struct ofpi_rdm_path *path, struct ofpi_packet *packet);
/* The same before the core knows the peer: requests wait until it does. */
void ofpi_rdm_packet_handle_early(struct ofpi_rdm_path *path, struct ofpi_packet *packet);
/* Requests that wait. Returns how many are dealt with. */
int ofpi_rdm_requests_resume(struct ofpi_rdm_path *path);

#endif
