/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over vectors of memory. */
#ifndef TCP_IOV_H
#define TCP_IOV_H

#include <stdint.h>
#include <sys/uio.h>

/* Copy `count` entries, without their first `offset` bytes, into `to`; returns how many are left. */
static inline uint32_t tcp_iov_skip(struct iovec *to, uint32_t room, const struct iovec *iov, uint32_t count,
                                    uint64_t offset)
{
    uint32_t filled = 0;

    for (uint32_t i = 0; i < count && filled < room; i++) {
        if (offset >= iov[i].iov_len) {
            offset -= iov[i].iov_len;
            continue;
        }
        to[filled].iov_base = (char *)iov[i].iov_base + offset;
        to[filled++].iov_len = iov[i].iov_len - offset;
        offset = 0;
    }
    return filled;
}

#endif
