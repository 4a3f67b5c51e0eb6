/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create and map segments. Memfds have two traps. A peer that shrinks one turns our next access into SIGBUS: a foreign
 * memfd is mapped only if it is sealed against that, and its size is checked. And the memory cgroup of the process that
 * touches a page first is charged for it, and may answer with the OOM killer: needed memory is backed at once by
 * fallocate, and only if enough is left (memory.c).
 */
#include "memory/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "meet/versions.h"
#include "memory/memory.h"
#include "memory/ring.h"

#define PAGE 4096
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t compute_whole_pages(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* Offsets that follow from the geometry. */
struct layout {
    uint64_t bounce_states, bounce_buffers, size;
};

static struct layout compute_layout(uint32_t slot_shift, uint32_t bounce_size, uint32_t bounce_count)
{
    struct layout layout;

    layout.bounce_states = SHM_RING_OFFSET + ((uint64_t)SHM_SLOT_SIZE << slot_shift);
    layout.bounce_buffers =
        compute_whole_pages(layout.bounce_states + (uint64_t)bounce_count * sizeof(struct shm_bounce_state));
    layout.size = compute_whole_pages(layout.bounce_buffers + (uint64_t)bounce_count * bounce_size);
    return layout;
}

/* ---------------------------------------------------------------------------------------------------------- memfds */

int shm_memfd_create(const char *name, uint64_t size, char *text, size_t text_size)
{
    struct rlimit limit;
    int fd, error;

    /* Beyond this limit ftruncate would send SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
        snprintf(text, text_size,
                 "shared memory of %llu bytes is beyond the file size limit of %llu bytes: raise it "
                 "(ulimit -f)",
                 (unsigned long long)size, (unsigned long long)limit.rlim_cur);
        return -EFBIG;
    }
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        error = errno;
        if (fd >= 0)
            close(fd);
        snprintf(text, text_size, "cannot make shared memory of %llu bytes: %s%s", (unsigned long long)size,
                 strerror(error), error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
        return -error;
    }
    return fd;
}

int shm_memfd_check(int fd, uint64_t *size, char *text, size_t text_size)
{
    struct statfs file_system;
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
        snprintf(text, text_size, "the peer's memory is not sealed against shrinking");
        return -EPROTO;
    }
    if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) {
        snprintf(text, text_size, "the peer's memory is sealed against writing");
        return -EPROTO;
    }
    /* Files on a hugetlbfs can be sealed too, and their pages may be missing. */
    if (fstatfs(fd, &file_system) != 0 || file_system.f_type != TMPFS_MAGIC || fstat(fd, &status) != 0) {
        snprintf(text, text_size, "the peer's memory is not an ordinary memfd");
        return -EPROTO;
    }
    if (status.st_size <= 0 || (*size && (uint64_t)status.st_size != *size)) {
        snprintf(text, text_size, "the peer's memory has %lld bytes in place of %llu", (long long)status.st_size,
                 (unsigned long long)*size);
        return -EPROTO;
    }
    *size = (uint64_t)status.st_size;
    return 0;
}

/* -------------------------------------------------------------------------------------------------------- segments */

static void set_parts(struct shm_segment *segment, const struct layout *layout)
{
    segment->header = (struct shm_header *)segment->base;
    segment->slots = (struct shm_slot *)(segment->base + SHM_RING_OFFSET);
    segment->bounce_states = (struct shm_bounce_state *)(segment->base + layout->bounce_states);
    segment->bounce_buffers = segment->base + layout->bounce_buffers;
}

#define CONSTANTS offsetof(struct shm_header, tail)

static struct shm_header build_constants(const struct shm_segment *segment)
{
    struct shm_header header = {.magic = SHM_SEGMENT_MAGIC,
                                .version = SHM_VERSION,
                                .oldest = SHM_OLDEST_VERSION,
                                .slot_shift = segment->slot_shift,
                                .bounce_size = segment->bounce_size,
                                .bounce_count = segment->bounce_count,
                                .incarnation = segment->incarnation,
                                .size = segment->size,
                                .knows = segment->knows};

    memcpy(header.identity, segment->identity, SHM_IDENTITY_SIZE);
    return header;
}

static void write_constants(const struct shm_segment *segment)
{
    struct shm_ring ring = {segment->header, segment->slots, segment->slot_shift};
    struct shm_header constants = build_constants(segment);

    memcpy(segment->header, &constants, CONSTANTS);
    shm_ring_init(&ring, 0);
}

bool shm_segment_is_whole(const struct shm_segment *segment)
{
    struct shm_header constants = build_constants(segment);

    return memcmp(segment->header, &constants, CONSTANTS) == 0;
}

int shm_segment_create(struct shm_segment *segment, uint32_t slot_shift, uint32_t bounce_size, uint32_t bounce_count,
                       uint64_t incarnation, const uint8_t *identity, int *fd, char *text, size_t text_size)
{
    struct layout layout = compute_layout(slot_shift, bounce_size, bounce_count);
    void *base;
    int error;

    *segment =
        (struct shm_segment){.size = layout.size,
                             .slot_shift = slot_shift,
                             .bounce_size = bounce_size,
                             .bounce_count = bounce_count,
                             .incarnation = incarnation,
                             .knows = SHM_KNOWS_INTERNAL | SHM_KNOWS_LOOKS | SHM_KNOWS_ATOMICS | SHM_KNOWS_PUSHES};
    if (identity)
        memcpy(segment->identity, identity, SHM_IDENTITY_SIZE);
    *fd = shm_memfd_create("ofipy-shm", layout.size, text, text_size);
    if (*fd < 0)
        return *fd;
    error = shm_memfd_reserve(*fd, 0, layout.bounce_buffers, "OFIPY_SHM_RING_SIZE", text, text_size);
    if (error)
        goto close_fd;
    base = mmap(NULL, layout.size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (base == MAP_FAILED) {
        error = -errno;
        snprintf(text, text_size, "cannot map %llu bytes of shared memory: %s", (unsigned long long)layout.size,
                 strerror(errno));
        goto close_fd;
    }
    segment->base = base;
    set_parts(segment, &layout);
    write_constants(segment);
    return 0;

close_fd:
    close(*fd);
    *fd = -1;
    return error;
}

int shm_segment_reserve_bounce(const struct shm_segment *segment, int fd, char *text, size_t text_size)
{
    return shm_memfd_reserve(fd, (uint64_t)(segment->bounce_buffers - segment->base),
                             (uint64_t)segment->bounce_count * segment->bounce_size, "OFIPY_SHM_BOUNCE_COUNT", text,
                             text_size);
}

static bool is_geometry_possible(const struct shm_segment *segment)
{
    return segment->slot_shift >= SHM_SLOT_SHIFT_MIN && segment->slot_shift <= SHM_SLOT_SHIFT_MAX &&
           segment->bounce_size >= SHM_BOUNCE_SIZE_MIN && segment->bounce_size <= SHM_BOUNCE_SIZE_MAX &&
           segment->bounce_size % SHM_CACHE_LINE == 0 && segment->bounce_count >= 1 &&
           segment->bounce_count <= SHM_BOUNCE_COUNT_MAX &&
           compute_layout(segment->slot_shift, segment->bounce_size, segment->bounce_count).size == segment->size;
}

/* A negative errno, with a text. */
static int check_header(const struct shm_header *header, const struct shm_segment *segment, char *text,
                        size_t text_size)
{
    const struct ofpi_versions ours = {SHM_VERSION, SHM_OLDEST_VERSION};
    const struct ofpi_versions theirs = {header->version, header->oldest};

    if (header->magic != SHM_SEGMENT_MAGIC) {
        snprintf(text, text_size, "what the peer sent is no segment");
        return -EPROTO;
    }
    if (!ofpi_versions_are_compatible(ours, theirs)) {
        ofpi_versions_describe("the layout of segments", ours, theirs, text, text_size);
        return -EPROTONOSUPPORT;
    }
    if (!is_geometry_possible(segment)) {
        snprintf(text, text_size, "the peer's segment has parts that cannot be");
        return -EPROTO;
    }
    return 0;
}

int shm_segment_map(struct shm_segment *segment, int fd, char *text, size_t text_size)
{
    struct shm_header header;
    struct layout layout;
    uint64_t size = 0;
    void *base;
    int error = shm_memfd_check(fd, &size, text, text_size);

    if (error)
        return error;
    if (size < SHM_RING_OFFSET) {
        snprintf(text, text_size, "the peer's segment has only %llu bytes", (unsigned long long)size);
        return -EPROTO;
    }
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        snprintf(text, text_size, "cannot map the peer's segment of %llu bytes: %s", (unsigned long long)size,
                 strerror(errno));
        return -errno;
    }
    /* Copied once: the peer can write the header at any time. */
    memcpy(&header, base, offsetof(struct shm_header, tail));
    *segment = (struct shm_segment){.base = base,
                                    .size = size,
                                    .slot_shift = header.slot_shift,
                                    .bounce_size = header.bounce_size,
                                    .bounce_count = header.bounce_count,
                                    .incarnation = header.incarnation,
                                    .knows = header.knows};
    memcpy(segment->identity, header.identity, SHM_IDENTITY_SIZE);
    error = check_header(&header, segment, text, text_size);
    if (error) {
        shm_segment_unmap(segment);
        return error;
    }
    layout = compute_layout(segment->slot_shift, segment->bounce_size, segment->bounce_count);
    set_parts(segment, &layout);
    return 0;
}

bool shm_identity_is_stated(const uint8_t identity[SHM_IDENTITY_SIZE])
{
    static const uint8_t none[SHM_IDENTITY_SIZE];

    return memcmp(identity, none, SHM_IDENTITY_SIZE) != 0;
}

void shm_segment_read_identity(int fd, uint8_t identity[SHM_IDENTITY_SIZE])
{
    char ignored[128];
    uint64_t size = 0;

    if (shm_memfd_check(fd, &size, ignored, sizeof(ignored)) != 0 ||
        pread(fd, identity, SHM_IDENTITY_SIZE, offsetof(struct shm_header, identity)) != SHM_IDENTITY_SIZE)
        memset(identity, 0, SHM_IDENTITY_SIZE);
}

void shm_segment_unmap(struct shm_segment *segment)
{
    if (segment->base)
        munmap(segment->base, segment->size);
    segment->base = NULL;
    segment->header = NULL;
}
