/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DESCRIBE_H
#define VERBS_DESCRIBE_H

#include "objects.h"

/* Describe the device and port of an info: lines of name, tab and value. */
int verbs_info_describe(const struct ofp_info *info, char *text, size_t text_size);

#endif
