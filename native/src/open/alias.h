/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_ALIAS_H
#define OFPI_ALIAS_H

#include "object/endpoint.h"

void ofpi_alias_retire(struct ofpi_endpoint *alias);

#endif
