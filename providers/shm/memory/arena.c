/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arenas: the memory of `domain.empty`, which peers can map.
 *
 * An arena is a sparse memfd of a fixed size. Its owner and every peer that receives from it map all of it, and do not unmap it
 * before the domain closes: so one descriptor and one exchange serve many regions, and peers need no notice of regions that are
 * allocated and freed. A region's pages are backed when it is allocated and punched out when it is freed. That returns the
 * memory even while a peer maps it, and makes the next use begin with zeros.
 */
#include "memory/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"
#include "memory/segment.h"

/* Bytes of address space, not of memory. A larger region gets an arena of its own size. */
#define ARENA_SIZE (UINT64_C(256) << 20)
/* After a failed request for an arena the next request waits this long, ns. */
#define REQUEST_PAUSE UINT64_C(1000000000)

struct shm_range {
    struct ofp_list node; /* in shm_arena.free, by offset */
    uint64_t offset, length;
};

struct shm_arena {
    struct ofp_list node; /* in shm_domain.arenas */
    uint32_t number;
    int fd;
    char *base;
    uint64_t size;
    struct ofp_list free; /* struct shm_range, none adjacent to another */
};

/* ------------------------------------------------------------------------------------------------------ free ranges */

static int add_range(struct ofp_list *after, uint64_t offset, uint64_t length)
{
    struct shm_range *range = malloc(sizeof(*range));

    if (!range)
        return -ENOMEM;
    range->offset = offset;
    range->length = length;
    ofp_list_insert_after(after, &range->node);
    return 0;
}

static struct shm_range *range_of_node(const struct shm_arena *arena, struct ofp_list *node)
{
    return node == &arena->free ? NULL : OFP_CONTAINER_OF(node, struct shm_range, node);
}

/* First fit. False: no range is long enough. */
static bool allocate_range(struct shm_arena *arena, uint64_t length, uint64_t *offset)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &arena->free) {
        struct shm_range *range = OFP_CONTAINER_OF(node, struct shm_range, node);

        if (range->length < length)
            continue;
        *offset = range->offset;
        range->offset += length;
        range->length -= length;
        if (!range->length) {
            ofp_list_remove(&range->node);
            free(range);
        }
        return true;
    }
    return false;
}

/* If memory runs out, the range is lost until the domain closes. */
static void free_range(struct shm_arena *arena, uint64_t offset, uint64_t length)
{
    struct ofp_list *before = &arena->free;
    struct shm_range *left, *right;

    while (before->next != &arena->free && OFP_CONTAINER_OF(before->next, struct shm_range, node)->offset < offset)
        before = before->next;
    left = range_of_node(arena, before);
    right = range_of_node(arena, before->next);
    if (left && left->offset + left->length == offset) {
        left->length += length;
        if (right && right->offset == offset + length) {
            left->length += right->length;
            ofp_list_remove(&right->node);
            free(right);
        }
    } else if (right && right->offset == offset + length) {
        right->offset = offset;
        right->length += length;
    } else if (add_range(before, offset, length) != 0) {
        shm_core->log(OFP_LOG_WARNING, SHM_NAME, "out of memory: %llu bytes of an arena are not used again",
                      (unsigned long long)length);
    }
}

/* ------------------------------------------------------------------------------------------------------- our arenas */

static void free_arena(struct shm_arena *arena)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&arena->free)))
        free(OFP_CONTAINER_OF(node, struct shm_range, node));
    munmap(arena->base, arena->size);
    close(arena->fd);
    free(arena);
}

static int create_arena(struct shm_domain *domain, uint64_t size, struct shm_arena **result, char *text,
                        size_t text_size)
{
    /* Numbers are not reused in a process, so a peer cannot mistake one arena for another. */
    static _Atomic uint32_t last_number;
    struct shm_arena *arena = calloc(1, sizeof(*arena));
    int fd = arena ? shm_memfd_create("ofipy-arena", size, text, text_size) : -ENOMEM;
    void *base;

    if (fd < 0) {
        free(arena);
        return fd;
    }
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ofp_list_init(&arena->free);
    if (base == MAP_FAILED || add_range(&arena->free, 0, size) != 0) {
        snprintf(text, text_size, "cannot map an arena of %llu bytes: %s", (unsigned long long)size, strerror(errno));
        if (base != MAP_FAILED)
            munmap(base, size);
        close(fd);
        free(arena);
        return -ENOMEM;
    }
    arena->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    arena->fd = fd;
    arena->base = base;
    arena->size = size;
    ofp_list_append(&domain->arenas, &arena->node);
    *result = arena;
    return 0;
}

/* Allocate a range, in a new arena if necessary. */
static int allocate_space(struct shm_domain *domain, uint64_t length, struct shm_arena **result, uint64_t *offset,
                          char *text, size_t text_size)
{
    struct ofp_list *node, *following;
    int error = -ENOMEM;

    OFP_LIST_EACH(node, following, &domain->arenas) {
        *result = OFP_CONTAINER_OF(node, struct shm_arena, node);
        if (allocate_range(*result, length, offset))
            return 0;
    }
    if (length < ARENA_SIZE)
        error = create_arena(domain, ARENA_SIZE, result, text, text_size);
    /* A limit on address space or file size may allow an arena of just this size. */
    if (error)
        error = create_arena(domain, length, result, text, text_size);
    if (error)
        return error;
    allocate_range(*result, length, offset);
    return 0;
}

static bool is_arena_unused(const struct shm_arena *arena)
{
    const struct shm_range *first = range_of_node(arena, arena->free.next);

    return first && first->length == arena->size;
}

int shm_arena_allocate(struct ofp_domain *handle, struct ofp_region *region, char *text, size_t text_size)
{
    struct shm_domain *domain = shm_domain_of(handle);
    struct shm_arena *arena;
    uint64_t offset = 0;
    int error = allocate_space(domain, region->length, &arena, &offset, text, text_size);

    if (error)
        return error;
    error = shm_memfd_reserve(arena->fd, offset, region->length, NULL, text, text_size);
    if (error) {
        fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)region->length);
        free_range(arena, offset, region->length);
        /* The arena was created for this region alone, and no peer has it. */
        if (arena->size > ARENA_SIZE && is_arena_unused(arena)) {
            ofp_list_remove(&arena->node);
            free_arena(arena);
        }
        return error;
    }
    region->base = arena->base + offset;
    ofp_region_device(handle, region)->provider_data[0] = (uint64_t)(uintptr_t)arena;
    ofp_region_device(handle, region)->provider_data[1] = offset;
    return 0;
}

void shm_arena_free(struct ofp_domain *domain, struct ofp_region *region)
{
    struct shm_arena *arena = (struct shm_arena *)(uintptr_t)ofp_region_device(domain, region)->provider_data[0];
    uint64_t offset = ofp_region_device(domain, region)->provider_data[1];

    if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)region->length) != 0)
        memset(arena->base + offset, 0, region->length);
    free_range(arena, offset, region->length);
}

void shm_arenas_close(struct shm_domain *domain)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&domain->arenas)))
        free_arena(OFP_CONTAINER_OF(node, struct shm_arena, node));
}

uint32_t shm_arena_find_memory(const struct shm_domain *domain, const void *memory, uint64_t length, uint64_t *offset)
{
    for (const struct ofp_list *node = domain->arenas.next; node != &domain->arenas; node = node->next) {
        const struct shm_arena *arena = OFP_CONTAINER_OF(node, const struct shm_arena, node);
        uint64_t at = (uint64_t)((uintptr_t)memory - (uintptr_t)arena->base);

        if (at < arena->size && length <= arena->size - at) {
            *offset = at;
            return arena->number;
        }
    }
    return 0;
}

static const struct shm_arena *find_own_arena(const struct shm_domain *domain, uint32_t number)
{
    for (const struct ofp_list *node = domain->arenas.next; node != &domain->arenas; node = node->next) {
        const struct shm_arena *arena = OFP_CONTAINER_OF(node, const struct shm_arena, node);

        if (arena->number == number)
            return arena;
    }
    return NULL;
}

int shm_arena_find_descriptor(const struct shm_domain *domain, uint32_t number)
{
    const struct shm_arena *arena = find_own_arena(domain, number);

    return arena ? arena->fd : -1;
}

/* --------------------------------------------------------------------------------------------------- foreign arenas */

struct shm_foreign_arena {
    struct ofp_list node; /* in shm_process.arenas */
    uint32_t number;
    bool requested;
    uint64_t request_again; /* time of the next request after a failure */
    char *base;             /* NULL: not mapped */
    uint64_t size;
};

static struct shm_foreign_arena *find_foreign_arena(const struct shm_process *process, uint32_t number)
{
    for (const struct ofp_list *node = process->arenas.next; node != &process->arenas; node = node->next) {
        const struct shm_foreign_arena *arena = OFP_CONTAINER_OF(node, const struct shm_foreign_arena, node);

        if (arena->number == number)
            return (struct shm_foreign_arena *)(uintptr_t)arena;
    }
    return NULL;
}

static void request_foreign_arena(struct shm_link *link, struct shm_foreign_arena *arena)
{
    if (arena->requested || (arena->request_again && shm_core->now() < arena->request_again))
        return;
    /* Set first: a failed request delivers its answer within the call. */
    arena->requested = true;
    if (link->endpoint->upper->request_arena(link, arena->number) != 0)
        shm_foreign_arena_arrived(link->process, arena->number, -1);
}

static char *resolve_range(char *base, uint64_t size, uint64_t offset, uint64_t length)
{
    return offset <= size && length <= size - offset ? base + offset : NULL;
}

char *shm_foreign_arena_resolve(struct shm_link *link, uint32_t number, uint64_t offset, uint64_t length)
{
    const struct shm_domain *domain = link->endpoint->domain;
    struct shm_foreign_arena *arena;

    if (link->process == &domain->self) {
        const struct shm_arena *own = find_own_arena(domain, number);

        return own ? resolve_range(own->base, own->size, offset, length) : NULL;
    }
    arena = find_foreign_arena(link->process, number);
    if (!arena) {
        arena = calloc(1, sizeof(*arena));
        if (!arena)
            return NULL;
        arena->number = number;
        ofp_list_append(&link->process->arenas, &arena->node);
    }
    if (!arena->base) {
        request_foreign_arena(link, arena);
        return NULL;
    }
    return resolve_range(arena->base, arena->size, offset, length);
}

bool shm_foreign_arena_is_requested(const struct shm_link *link, uint32_t number)
{
    const struct shm_foreign_arena *arena = find_foreign_arena(link->process, number);

    return arena && arena->requested;
}

void shm_foreign_arena_arrived(struct shm_process *process, uint32_t number, int fd)
{
    struct shm_foreign_arena *arena = find_foreign_arena(process, number);
    char text[OFP_TEXT_MAX] = "";
    uint64_t size = number == SHM_TABLE_NUMBER ? SHM_TABLE_SIZE : 0;
    void *base;

    if (!arena || arena->base)
        return;
    arena->requested = false;
    arena->request_again = shm_core->now() + REQUEST_PAUSE;
    if (fd < 0)
        return;
    if (shm_memfd_check(fd, &size, text, sizeof(text)) != 0) {
        shm_core->log(OFP_LOG_WARNING, SHM_NAME, "a peer's arena is refused: %s", text);
        return;
    }
    base = mmap(NULL, size, number == SHM_TABLE_NUMBER ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return;
    arena->base = base;
    arena->size = size;
}

void shm_foreign_arenas_close(struct shm_process *process)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&process->arenas))) {
        struct shm_foreign_arena *arena = OFP_CONTAINER_OF(node, struct shm_foreign_arena, node);

        if (arena->base)
            munmap(arena->base, arena->size);
        free(arena);
    }
}
