/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/slot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/memory.h"

#define SLOTS_PER_SLAB 32

struct verbs_slab {
    struct verbs_slab *next;
    char *memory;
    struct verbs_registration *registration;
    struct verbs_slot slots[SLOTS_PER_SLAB];
};

static size_t compute_slab_size(const struct verbs_domain *domain) { return SLOTS_PER_SLAB * domain->slots.size; }

static bool grow_slots(struct verbs_domain *domain)
{
    struct verbs_slab *slab = calloc(1, sizeof(*slab));

    if (!slab)
        return false;
    slab->memory = mmap(NULL, compute_slab_size(domain), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab->memory == MAP_FAILED)
        goto no_memory;
    slab->registration =
        verbs_memory_acquire(domain, NULL, slab->memory, compute_slab_size(domain), IBV_ACCESS_LOCAL_WRITE);
    if (!slab->registration)
        goto not_registered;
    for (int i = 0; i < SLOTS_PER_SLAB; i++) {
        slab->slots[i].memory = slab->memory + (size_t)i * domain->slots.size;
        slab->slots[i].key = slab->registration->mr->lkey;
        verbs_slot_free(domain, &slab->slots[i]);
    }
    slab->next = domain->slots.slabs;
    domain->slots.slabs = slab;
    return true;
not_registered:
    munmap(slab->memory, compute_slab_size(domain));
no_memory:
    free(slab);
    return false;
}

struct verbs_slot *verbs_slot_allocate(struct verbs_domain *domain)
{
    struct verbs_slot *slot;

    if (!domain->slots.free && !grow_slots(domain))
        return NULL;
    slot = domain->slots.free;
    domain->slots.free = slot->next;
    return slot;
}

void verbs_slots_close(struct verbs_domain *domain)
{
    struct verbs_slab *slab;

    while ((slab = domain->slots.slabs)) {
        domain->slots.slabs = slab->next;
        verbs_cache_release(&domain->cache, slab->registration);
        munmap(slab->memory, compute_slab_size(domain));
        free(slab);
    }
}

void verbs_iov_gather(char *memory, const struct iovec *iov, uint32_t count, uint64_t length)
{
    for (uint32_t i = 0; i < count && length; i++) {
        uint64_t piece = iov[i].iov_len < length ? iov[i].iov_len : length;

        if (piece)
            memcpy(memory, iov[i].iov_base, piece);
        memory += piece;
        length -= piece;
    }
}

void verbs_iov_scatter(const char *memory, const struct iovec *iov, uint32_t count, uint64_t length)
{
    for (uint32_t i = 0; i < count && length; i++) {
        uint64_t piece = iov[i].iov_len < length ? iov[i].iov_len : length;

        if (piece)
            memcpy(iov[i].iov_base, memory, piece);
        memory += piece;
        length -= piece;
    }
}
