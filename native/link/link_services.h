/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_SERVICES_H
#define LINK_SERVICES_H

#include "ofipy/services.h"

/* As ofp_endpoint_ops.receive_start: passes the receive to the provider that announced the message. */
void link_receive_start(struct ofp_endpoint *outer, struct ofp_receive *receive);

/* Services of inner endpoints. Calls go to the services of the outer endpoint, which may be those of hooks. */
extern const struct ofp_services link_services;

#endif
