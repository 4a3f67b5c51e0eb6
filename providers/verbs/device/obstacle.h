/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_OBSTACLE_H
#define VERBS_OBSTACLE_H

#include <stddef.h>

/* Why no port can be used, and what to do. The libraries are loaded. */
void verbs_obstacle(char *text, size_t text_size);

#endif
