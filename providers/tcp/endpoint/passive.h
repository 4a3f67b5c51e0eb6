/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PASSIVE_H
#define TCP_PASSIVE_H

#include "objects.h"

extern const struct ofp_passive_ops tcp_passive_ops;

#endif
