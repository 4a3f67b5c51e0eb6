/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-memory attach: read and write the address space of a peer. */
#ifndef SHM_ATTACH_H
#define SHM_ATTACH_H

#include <sys/uio.h>

#include "shm.h"

enum shm_attach {
    SHM_ATTACH_DONE,
    SHM_ATTACH_FORBIDDEN, /* not allowed after all */
    SHM_ATTACH_GONE,      /* the process is dead, or another one has its pid */
    SHM_ATTACH_FAULT      /* memory of one of the processes is not mapped */
};

/*
 * Size of both lists that shm_attach_read gets. It adds an entry of its own, which proves the identity of the process.
 */
#define SHM_ATTACH_ROOM (OFP_SEGMENT_LIMIT + 1)

/* Copy `length` bytes between two lists of pieces, each with that total. */
enum shm_attach shm_attach_read(const struct shm_link *link, struct iovec *local, uint32_t local_count,
                                struct iovec *remote, uint32_t remote_count, uint64_t length);
enum shm_attach shm_attach_write(const struct shm_link *link, const struct iovec *local, uint32_t local_count,
                                 const struct iovec *remote, uint32_t remote_count, uint64_t length);
/*
 * Copy `length` bytes from `offset` of a layout on to (`out`) or from the peer's pieces, from `remote_offset` of those on: in
 * parts, by way of a small buffer that stays in the processor's cache.
 */
enum shm_attach shm_attach_copy_layout(const struct shm_link *link, const struct ofp_layout *layout, uint64_t offset,
                                       const struct iovec *remote, uint32_t remote_count, uint64_t remote_offset,
                                       uint64_t length, bool out);

#endif
