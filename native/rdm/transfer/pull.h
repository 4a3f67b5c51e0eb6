/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of announced messages, and the transfer of their payload. */
#ifndef OFPI_RDM_PULL_H
#define OFPI_RDM_PULL_H

#include "rdm/transfer/rdm.h"

/* Handle a packet. 0, or -EAGAIN: the core has no space, and the packet waits. */
int ofpi_rdm_announcement_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
void ofpi_rdm_data_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);
void ofpi_rdm_pushed_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

/* As ofp_endpoint_ops.receive_start. */
void ofpi_rdm_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive);

#endif
