/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_DRAW_H
#define SHM_DRAW_H

#include <stdint.h>

/* A random number, never 0. */
uint64_t shm_draw(void);

#endif
