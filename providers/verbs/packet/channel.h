/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet channel, and RDM endpoints upon it. */
#ifndef VERBS_PACKET_CHANNEL_H
#define VERBS_PACKET_CHANNEL_H

#include "packet/packet.h"

/* What the device has for one, within what was asked for by parameters. */
void verbs_packet_limits_compute(const struct verbs_port *port, struct ofpi_channel_limits *limits);

extern const struct ofp_endpoint_ops verbs_rdm_ops;

#endif
