/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics: by the device if it can, else by a request to the peer. */
#ifndef OFPI_RDM_RMA_H
#define OFPI_RDM_RMA_H

#include "rdm/transfer/rdm.h"

/* As ofp_endpoint_ops.post. */
int ofpi_rdm_remote_post(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer);
/* The peer's put with remote CQ data has reached our memory. */
void ofpi_rdm_notice_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

#endif
