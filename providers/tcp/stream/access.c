/* SPDX-License-Identifier: BSD-3-Clause */
/* The local memory that a peer's request names. The core's references keep it valid until the request is complete. */
#include "stream/access.h"

#include <errno.h>
#include <stdlib.h>

#include "ofipy/iov.h"

void tcp_accesses_release(struct tcp_accesses *accesses)
{
    for (uint32_t i = 0; i < accesses->count; i++)
        tcp_core->remote_release(&accesses->access[i]);
    free(accesses);
}

struct tcp_accesses *tcp_accesses_acquire(struct tcp_connection *connection, const struct tcp_header *header,
                                          uint32_t rights, int *error)
{
    struct tcp_accesses *accesses = calloc(1, sizeof(*accesses));

    *error = -ENOMEM;
    if (!accesses)
        return NULL;
    for (unsigned i = 0; i < header->remote_count; i++) {
        const struct ofp_remote_segment *remote = &header->remote[i];

        *error = ofp_remote_access(connection->endpoint->base, remote->key, remote->offset, remote->length, rights,
                                   &accesses->access[i]);
        if (*error) {
            tcp_accesses_release(accesses);
            return NULL;
        }
        accesses->count++;
        accesses->length += remote->length;
    }
    return accesses;
}

int tcp_accesses_fill_iov(const struct tcp_accesses *accesses, uint64_t offset, struct iovec *iov, uint32_t space)
{
    struct iovec whole[TCP_REMOTE_MAX];

    for (uint32_t i = 0; i < accesses->count; i++) {
        const struct ofp_remote_access *access = &accesses->access[i];

        if (!access->memory && access->length)
            return -1;
        whole[i] = (struct iovec){access->memory, access->length};
    }
    return (int)ofp_iov_cut(iov, space, whole, accesses->count, offset, OFP_IOV_ALL);
}
