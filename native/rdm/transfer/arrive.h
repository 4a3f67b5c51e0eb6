/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch of arrived packets by their kind. */
#ifndef OFPI_RDM_ARRIVE_H
#define OFPI_RDM_ARRIVE_H

#include "rdm/transfer/rdm.h"

/* Handle a packet of a path. Its buffer is posted again now, or when a request that has to wait was handled. */
void ofpi_rdm_packet_handle(struct ofpi_rdm_path *path, struct ofpi_packet *packet);
/* The same before the core knows the peer: requests wait until it does. */
void ofpi_rdm_packet_handle_early(struct ofpi_rdm_path *path, struct ofpi_packet *packet);
/* Handle requests that wait. Returns how many were handled. */
int ofpi_rdm_requests_resume(struct ofpi_rdm_path *path);

#endif
