/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_OBSTACLE_H
#define VERBS_OBSTACLE_H

#include <stdbool.h>
#include <stddef.h>

/* The first device that the kernel has; false: none. Needs none of the libraries. */
bool verbs_kernel_device_find(char *name, size_t size);

/* Why no port can be used, and what to do. The libraries are loaded. */
void verbs_obstacle_describe(char *text, size_t text_size);

#endif
