/* SPDX-License-Identifier: BSD-3-Clause */
/* Query and back shared memory. */
#ifndef SHM_MEMORY_H
#define SHM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Back a range with memory now. -ENOMEM with the remedy in `text` when the machine or the memory cgroup has too little.
 */
int shm_memfd_reserve(int fd, uint64_t offset, uint64_t length, const char *parameter, char *text, size_t text_size);

/* Bytes that this process can allocate before its memory cgroup or the machine has no more; UINT64_MAX: unknown. */
uint64_t shm_memory_compute_available(char *where, size_t where_size);

#endif
