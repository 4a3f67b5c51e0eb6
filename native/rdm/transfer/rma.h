/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics: by the device where it can, else by asking the peer. */
#ifndef OFPI_RDM_RMA_H
#define OFPI_RDM_RMA_H

#include "rdm/transfer/rdm.h"

/* As `post` of an endpoint. */
int ofpi_rdm_remote_post(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer);
/* A put with remote CQ data of the peer's is in memory here. */
void ofpi_rdm_notice_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

#endif
