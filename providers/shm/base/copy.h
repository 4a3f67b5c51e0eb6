/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stdint.h>

/* Copy to memory that this processor core does not read soon. */
void shm_copy_nontemporal(void *to, const void *from, uint64_t length);

#endif
