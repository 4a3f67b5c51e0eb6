/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics that a peer requests. */
#ifndef OFPI_RDM_SERVE_H
#define OFPI_RDM_SERVE_H

#include "rdm/transfer/rdm.h"

/* 0, or -EAGAIN: there is no credit for the answer, and the packet waits. */
int ofpi_rdm_remote_serve(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

#endif
