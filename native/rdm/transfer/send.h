/* SPDX-License-Identifier: BSD-3-Clause */
/* Send a message: eager, or by its announcement. */
#ifndef OFPI_RDM_SEND_H
#define OFPI_RDM_SEND_H

#include "rdm/transfer/rdm.h"

/* As ofp_endpoint_ops.post. */
int ofpi_rdm_message_send(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer);
/* As ofp_endpoint_ops.protocol_choose. */
bool ofpi_rdm_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                              struct ofp_protocol_choice *choice);

#endif
