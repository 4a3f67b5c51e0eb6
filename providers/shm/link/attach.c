/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cross-memory attach (process_vm_readv(2)). A pid may have been reused by another process, so each access verifies the
 * incarnation of the peer, at most every VERIFIED_FOR.
 */
#include "link/attach.h"

#include <errno.h>

#include "link/process.h"
#include "ofipy/iov.h"

/*
 * A pid that was the peer's is not reused within this time, ns: that would take tens of thousands of forks. A check
 * with every message costs a twentieth of the throughput at 64 KiB.
 */
#define VERIFIED_FOR UINT64_C(50000000)

static enum shm_attach convert_attach_error(const struct shm_link *link, ssize_t got)
{
    if (got < 0 && errno == ESRCH)
        return SHM_ATTACH_GONE;
    if (got < 0 && (errno == EPERM || errno == ENOSYS))
        return SHM_ATTACH_FORBIDDEN;
    /* A fault in the payload alone, or in the whole process? */
    return shm_process_is_same(link) ? SHM_ATTACH_FAULT : SHM_ATTACH_GONE;
}

enum shm_attach shm_attach_read(const struct shm_link *link, struct iovec *local, uint32_t local_count,
                                struct iovec *remote, uint32_t remote_count, uint64_t length)
{
    uint64_t word = link->segment.incarnation, now = shm_core->now();
    bool verify = now - link->process->verified_at > VERIFIED_FOR;
    ssize_t got;

    /* Read the incarnation in the same call as the payload: between two calls the pid could be reused. */
    if (verify) {
        local[local_count++] = (struct iovec){&word, sizeof(word)};
        remote[remote_count++] = (struct iovec){(void *)(uintptr_t)link->probe_address, sizeof(word)};
        length += sizeof(word);
    }
    got = process_vm_readv(link->process->pid, local, local_count, remote, remote_count, 0);
    if (got != (ssize_t)length)
        return convert_attach_error(link, got);
    if (word != link->segment.incarnation)
        return SHM_ATTACH_GONE;
    if (verify)
        link->process->verified_at = now;
    return SHM_ATTACH_DONE;
}

enum shm_attach shm_attach_write(const struct shm_link *link, const struct iovec *local, uint32_t local_count,
                                 const struct iovec *remote, uint32_t remote_count, uint64_t length)
{
    uint64_t now = shm_core->now();
    ssize_t got;

    /* Verify before anything is written. */
    if (now - link->process->verified_at > VERIFIED_FOR) {
        if (!shm_process_is_same(link))
            return SHM_ATTACH_GONE;
        link->process->verified_at = now;
    }
    got = process_vm_writev(link->process->pid, local, local_count, remote, remote_count, 0);
    return got == (ssize_t)length ? SHM_ATTACH_DONE : convert_attach_error(link, got);
}

enum shm_attach shm_attach_copy_layout(const struct shm_link *link, const struct ofp_layout *layout, uint64_t offset,
                                       const struct iovec *remote, uint32_t remote_count, uint64_t remote_offset,
                                       uint64_t length, bool out)
{
    char packed[32 << 10];
    enum shm_attach result = SHM_ATTACH_DONE;

    for (uint64_t done = 0, part; done < length && result == SHM_ATTACH_DONE; done += part) {
        struct iovec local[SHM_ATTACH_ROOM] = {{packed, 0}}, there[SHM_ATTACH_ROOM];
        uint32_t count;

        part = length - done < sizeof(packed) ? length - done : sizeof(packed);
        local[0].iov_len = part;
        count = ofp_iov_cut(there, OFP_SEGMENT_LIMIT, remote, remote_count, remote_offset + done, part);
        if (out) {
            ofp_layout_gather(layout, offset + done, packed, part);
            result = shm_attach_write(link, local, 1, there, count, part);
        } else {
            result = shm_attach_read(link, local, 1, there, count, part);
            if (result == SHM_ATTACH_DONE)
                ofp_layout_scatter(layout, offset + done, packed, part);
        }
    }
    return result;
}
