/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PASSIVE_H
#define VERBS_PASSIVE_H

#include "objects.h"

/* Requests that were not answered; the kernel rejects requests beyond it. */
#define VERBS_BACKLOG 1024

extern const struct ofp_passive_ops verbs_passive_ops;

#endif
