/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that follow the roster of a job. The domain's lock is held. */
#ifndef OFPI_ROSTER_H
#define OFPI_ROSTER_H

#include "object/endpoint.h"

/* Stop following the roster; no effect if the endpoint follows none. */
void ofpi_follower_free(struct ofpi_endpoint *endpoint);

#endif
