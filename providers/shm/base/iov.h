/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory in several pieces, and a part of it: [offset, offset + length) of the bytes of all pieces together. */
#ifndef SHM_IOV_H
#define SHM_IOV_H

#include <stdint.h>
#include <sys/uio.h>

/* Copy a part out of the pieces, or into them. */
void shm_gather(void *target, const struct iovec *iov, uint32_t iov_count, uint64_t offset, uint64_t length);
void shm_scatter(const struct iovec *iov, uint32_t iov_count, uint64_t offset, const void *source, uint64_t length);
/* The part as a list of its own. Returns its entries. */
uint32_t shm_cut(struct iovec *result, const struct iovec *iov, uint32_t iov_count, uint64_t offset, uint64_t length);

#endif
