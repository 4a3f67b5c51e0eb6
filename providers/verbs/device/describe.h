/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DESCRIBE_H
#define VERBS_DESCRIBE_H

#include "objects.h"

/* The device and port behind an info: lines of a name, a tab and a value. */
int verbs_info_describe(const struct ofp_info *info, char *text, size_t text_size);

#endif
