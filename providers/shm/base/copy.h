/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Bytes of one ordinary copy of mapped memory. glibc's memcpy changes its instructions at the size of the L2 cache on AMD
 * processors. On an EPYC copies below that size are faster: docs/reference/performance.md.
 */
#define SHM_COPY_SLICE (UINT64_C(256) << 10)

/* Whether a nontemporal copy differs from an ordinary copy. */
#if defined(__x86_64__)
#define SHM_HAS_NONTEMPORAL 1
#else
#define SHM_HAS_NONTEMPORAL 0
#endif

/*
 * Copy `length` bytes between two lists of pieces with that total, and use up both. `nontemporal`: past the caches, to
 * memory that this processor core does not read soon.
 */
void shm_pieces_copy(struct iovec *to, struct iovec *from, uint64_t length, bool nontemporal);

#endif
