/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_STREAM_H
#define SHM_STREAM_H

#include <stdint.h>

/* Copy to memory that this core does not read next. */
void shm_stream(void *to, const void *from, uint64_t length);

#endif
