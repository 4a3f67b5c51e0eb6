/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of scattered memory. */
#include "base/iov.h"

#include <string.h>

void shm_gather(void *target, const struct iovec *iov, uint32_t iov_count, uint64_t offset, uint64_t length)
{
    char *to = target;

    for (uint32_t i = 0; i < iov_count && length; i++) {
        uint64_t room = iov[i].iov_len, part;

        if (offset >= room) {
            offset -= room;
            continue;
        }
        part = room - offset < length ? room - offset : length;
        memcpy(to, (const char *)iov[i].iov_base + offset, part);
        to += part;
        length -= part;
        offset = 0;
    }
}

void shm_scatter(const struct iovec *iov, uint32_t iov_count, uint64_t offset, const void *source, uint64_t length)
{
    const char *from = source;

    for (uint32_t i = 0; i < iov_count && length; i++) {
        uint64_t room = iov[i].iov_len, part;

        if (offset >= room) {
            offset -= room;
            continue;
        }
        part = room - offset < length ? room - offset : length;
        memcpy((char *)iov[i].iov_base + offset, from, part);
        from += part;
        length -= part;
        offset = 0;
    }
}

uint32_t shm_cut(struct iovec *result, const struct iovec *iov, uint32_t iov_count, uint64_t offset, uint64_t length)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < iov_count && length; i++) {
        uint64_t part;

        if (offset >= iov[i].iov_len) {
            offset -= iov[i].iov_len;
            continue;
        }
        part = iov[i].iov_len - offset < length ? iov[i].iov_len - offset : length;
        result[count++] = (struct iovec){(char *)iov[i].iov_base + offset, part};
        length -= part;
        offset = 0;
    }
    return count;
}
