/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet channel, and RDM endpoints. */
#ifndef VERBS_PACKET_CHANNEL_H
#define VERBS_PACKET_CHANNEL_H

#include "packet/packet.h"

/* The limits of a channel: those of the device and of the parameters. */
void verbs_packet_limits_compute(const struct verbs_port *port, struct ofpi_channel_limits *limits);

extern const struct ofp_endpoint_ops verbs_rdm_ops;

#endif
