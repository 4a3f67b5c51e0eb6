/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFI_CONNECTION_H
#define OFI_CONNECTION_H

#include "bridge.h"

/* Endpoints of type MSG. */
extern const struct ofp_endpoint_ops bridge_msg_ops;

#endif
