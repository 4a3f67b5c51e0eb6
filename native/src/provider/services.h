/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_SERVICES_H
#define OFPI_SERVICES_H

#include "ofipy/services.h"

extern const struct ofp_services ofpi_services;

#endif
