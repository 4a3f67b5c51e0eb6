/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending a message: whole, or its announcement. */
#ifndef OFPI_RDM_SEND_H
#define OFPI_RDM_SEND_H

#include "rdm/transfer/rdm.h"

/* As `post` of an endpoint. */
int ofpi_rdm_message_send(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer);

#endif
