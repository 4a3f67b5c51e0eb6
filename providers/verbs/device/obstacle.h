/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_OBSTACLE_H
#define VERBS_OBSTACLE_H

#include <stdbool.h>
#include <stddef.h>

/* Find the first device of the kernel, without the libraries. Returns false if there is none. */
bool verbs_kernel_device_find(char *name, size_t size);

/* Describe why no port can be used and what to do. The libraries are loaded. */
void verbs_obstacle_describe(char *text, size_t text_size);

#endif
