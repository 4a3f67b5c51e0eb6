/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region table: the owner's side, and the protocol between visitors and the owner that closes a region (table.h).
 */
#include "link/table.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/process.h"
#include "memory/arena.h"
#include "memory/memory.h"
#include "memory/segment.h"

/* The owner's private copy of its entries: other processes could have overwritten the shared table. */
struct shm_published {
    uint64_t serial; /* 0: the entry is free */
    uint32_t id;     /* the region's */
};

struct shm_table {
    int fd;
    struct shm_region_entry *entries;
    uint32_t last; /* number in the serial given last */
    struct shm_published published[1u << SHM_TABLE_SHIFT];
};

static uint32_t compute_place(uint64_t key, uint32_t probe)
{
    /* Keys that users choose may be small numbers: spread them. */
    uint64_t first = (key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SHM_TABLE_SHIFT);

    return (uint32_t)((first + probe) & ((1u << SHM_TABLE_SHIFT) - 1));
}

/* The upper half of every serial of a domain. By it the domain identifies visitors to its regions. */
static uint64_t family_of_domain(const struct shm_domain *domain) { return domain->token << 32; }

/* ------------------------------------------------------------------------------------------------------------- owner */

static struct shm_table *create_table(void)
{
    struct shm_table *table = calloc(1, sizeof(*table));
    char text[OFP_TEXT_MAX] = "";
    void *base = MAP_FAILED;

    if (!table)
        return NULL;
    table->fd = shm_memfd_create("ofipy-regions", SHM_TABLE_SIZE, text, sizeof(text));
    if (table->fd >= 0 && shm_memfd_reserve(table->fd, 0, SHM_TABLE_SIZE, NULL, text, sizeof(text)) == 0)
        base = mmap(NULL, SHM_TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, table->fd, 0);
    if (base != MAP_FAILED) {
        table->entries = base;
        return table;
    }
    shm_core->log(OFP_LOG_WARNING, SHM_NAME, "no table of regions, access to memory goes slower: %s", text);
    if (table->fd >= 0)
        close(table->fd);
    free(table);
    return NULL;
}

void shm_table_close(struct shm_domain *domain)
{
    if (!domain->table)
        return;
    munmap(domain->table->entries, SHM_TABLE_SIZE);
    close(domain->table->fd);
    free(domain->table);
    domain->table = NULL;
}

int shm_table_descriptor_of(const struct shm_domain *domain) { return domain->table ? domain->table->fd : -1; }

static void fill_entry(struct shm_domain *domain, struct shm_region_entry *entry, const struct ofp_region *region,
                       uint64_t key)
{
    uint64_t arena_offset = 0;
    uint32_t arena = shm_arena_find_memory(domain, region->base, region->length, &arena_offset);

    ofp_store_relaxed(&entry->key, key);
    ofp_store_relaxed(&entry->address, (uint64_t)(uintptr_t)region->base);
    ofp_store_relaxed(&entry->length, region->length);
    ofp_store_relaxed(&entry->arena, arena);
    ofp_store_relaxed(&entry->arena_offset, arena_offset);
    ofp_store_relaxed(&entry->access, region->access | (region->remote_events ? SHM_ENTRY_EVENTS : 0));
    ofp_store_relaxed(&entry->id, region->id);
}

int shm_region_publish(struct ofp_domain *handle, struct ofp_region *region)
{
    struct shm_domain *domain = shm_domain_of(handle);
    uint64_t key = ofp_region_device(handle, region)->key;

    if (!domain->table && !(domain->table = create_table()))
        return 0;
    for (uint32_t probe = 0; probe < SHM_TABLE_PROBES; probe++) {
        uint32_t place = compute_place(key, probe);
        struct shm_published *published = &domain->table->published[place];

        if (published->serial)
            continue;
        if (!++domain->table->last)
            domain->table->last = 1;
        *published = (struct shm_published){family_of_domain(domain) | domain->table->last, region->id};
        fill_entry(domain, &domain->table->entries[place], region, key);
        /* Pairs with shm_table_find: a reader of this serial reads the complete entry. */
        ofp_store_release(&domain->table->entries[place].serial, published->serial);
        break;
    }
    return 0;
}

/* The word `visiting` of a peer's segment. */
static uint64_t get_visited_serial(const struct shm_link *link)
{
    if (!link || !link->segment.header || link->process->dead)
        return 0;
    return ofp_load_ordered(&link->segment.header->visiting);
}

static bool is_visited(const struct shm_domain *domain, uint64_t serial)
{
    for (const struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        const struct shm_endpoint *endpoint = OFP_CONTAINER_OF(node, const struct shm_endpoint, node);

        for (uint32_t number = 1; number < endpoint->link_capacity; number++)
            if (get_visited_serial(endpoint->links[number]) == serial)
                return true;
    }
    return false;
}

int shm_region_withdraw(struct ofp_domain *handle, struct ofp_region *region)
{
    struct shm_domain *domain = shm_domain_of(handle);
    uint64_t key = ofp_region_device(handle, region)->key;

    for (uint32_t probe = 0; domain->table && probe < SHM_TABLE_PROBES; probe++) {
        uint32_t place = compute_place(key, probe);
        struct shm_published *published = &domain->table->published[place];

        if (!published->serial || published->id != region->id)
            continue;
        /* Withdraw the entry before the visitors are checked; pairs with shm_visit_start. */
        ofp_publish(&domain->table->entries[place].serial, 0);
        if (is_visited(domain, published->serial))
            return -EAGAIN;
        published->serial = 0;
        break;
    }
    return 0;
}

void shm_visitors_wait(struct shm_endpoint *endpoint, uint64_t deadline)
{
    const struct shm_domain *domain = endpoint->domain;

    for (uint32_t number = 1; number < endpoint->link_capacity; number++) {
        const struct shm_link *link = endpoint->links[number];
        uint64_t serial;

        while ((serial = get_visited_serial(link)) != 0 && (serial ^ family_of_domain(domain)) >> 32 == 0 &&
               !shm_process_has_died(link->process) && shm_core->now() < deadline)
            sched_yield();
    }
}

/* ----------------------------------------------------------------------------------------------------------- visitor */

const struct shm_region_entry *shm_table_resolve(struct shm_link *link)
{
    const struct shm_domain *domain = link->endpoint->domain;

    if (link->process == &domain->self)
        return domain->table ? domain->table->entries : NULL;
    return (const struct shm_region_entry *)shm_foreign_arena_resolve(link, SHM_TABLE_NUMBER, 0, SHM_TABLE_SIZE);
}

bool shm_table_find(const struct shm_region_entry *table, uint64_t key, struct shm_target *target)
{
    for (uint32_t probe = 0; probe < SHM_TABLE_PROBES; probe++) {
        const struct shm_region_entry *entry = &table[compute_place(key, probe)];

        target->serial = ofp_load_acquire(&entry->serial);
        if (!target->serial || ofp_load_relaxed(&entry->key) != key)
            continue;
        target->entry = entry;
        target->address = ofp_load_relaxed(&entry->address);
        target->length = ofp_load_relaxed(&entry->length);
        target->arena = ofp_load_relaxed(&entry->arena);
        target->arena_offset = ofp_load_relaxed(&entry->arena_offset);
        target->access = ofp_load_relaxed(&entry->access);
        target->id = ofp_load_relaxed(&entry->id);
        return true;
    }
    return false;
}

bool shm_visit_start(struct shm_link *link, const struct shm_target *target)
{
    _Atomic uint64_t *own = &link->endpoint->segment.header->visiting;

    /*
     * Announce the visit before the serial is checked again, which also proves that the copy of the entry is complete.
     * Pairs with shm_region_withdraw.
     */
    ofp_publish(own, target->serial);
    if (ofp_load_ordered(&target->entry->serial) == target->serial &&
        /* Pairs with shm_endpoint_close, which then waits for the visit. */
        !(ofp_load_ordered(&link->ring.header->status) & (SHM_CLOSING | SHM_CLOSED)))
        return true;
    ofp_store_release(own, 0);
    return false;
}

bool shm_visit_end(struct shm_link *link, const struct shm_target *target)
{
    bool same;

    ofp_read_fence();
    same = ofp_load_acquire(&target->entry->serial) == target->serial;
    /* Release: the bytes were moved before. Pairs with is_visited. */
    ofp_store_release(&link->endpoint->segment.header->visiting, 0);
    return same;
}
