/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PASSIVE_H
#define VERBS_PASSIVE_H

#include "objects.h"

/* Requests that the core knows, and who asked has not heard of yet; beyond it the kernel refuses. */
#define VERBS_BACKLOG 1024

extern const struct ofp_passive_ops verbs_passive_ops;

#endif
