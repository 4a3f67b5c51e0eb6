/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_RANDOM_H
#define SHM_RANDOM_H

#include <stdint.h>

/* A random number, never 0. */
uint64_t shm_random_read(void);

#endif
