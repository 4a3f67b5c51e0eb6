/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_SERVICES_H
#define LINK_SERVICES_H

#include "ofipy/services.h"

/* As of ofp_endpoint_ops: to the provider by whose way the message was announced. */
void link_receive_start(struct ofp_endpoint *outer, struct ofp_receive *receive);

/* Of inner endpoints: what providers tell and ask goes to the outer one, whose services may be hooks'. */
extern const struct ofp_services link_services;

#endif
