/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/page.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "base/process_lock.h"
#include "ofipy/atomics.h"
#include "ofipy/ofp.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

#define BLOCKS (OFPI_PAGE_ENDPOINTS / OFPI_BLOCK_ENDPOINTS)
/* Entries of peers in a page of memory. */
#define PEER_GROUP (4096 / sizeof(struct ofpi_page_peer))
#define PEER_GROUPS (OFPI_PAGE_PEERS / PEER_GROUP)

/* A page, as this process knows it. Guarded by OFPI_LOCK_PAGES. Never freed: a process keeps its pages to its end. */
struct owner {
    struct owner *next;
    struct ofpi_page *page;
    int fd; /* -1: ordinary memory */
    bool has_endpoint[OFPI_PAGE_ENDPOINTS], has_peer[OFPI_PAGE_PEERS];
    bool has_memory[BLOCKS], has_peer_memory[PEER_GROUPS];
};

static struct owner *owners; /* newest first */
static uint32_t last_number; /* of an endpoint */
static char job_name[sizeof(((struct ofpi_page_header *)0)->job)];
static int32_t job_rank = -1;

/* ------------------------------------------------------------------------------------------------------ making pages */

/*
 * NULL: the system has no sealed memory files, or no memory for this one. The descriptor stays open: readers find the
 * page by it.
 */
static struct ofpi_page *map_file(int *fd)
{
    void *memory;

    *fd = memfd_create("ofipy-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return NULL;
    if (ftruncate(*fd, sizeof(struct ofpi_page)) == 0 && fallocate(*fd, 0, 0, sizeof(struct ofpi_page_header)) == 0) {
        memory = mmap(NULL, sizeof(struct ofpi_page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        /* A forked child would count in this process's page. */
        if (memory != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, SEALS) == 0 &&
            madvise(memory, sizeof(struct ofpi_page), MADV_DONTFORK) == 0)
            return memory;
        if (memory != MAP_FAILED)
            munmap(memory, sizeof(struct ofpi_page));
    }
    close(*fd);
    *fd = -1;
    return NULL;
}

static struct ofpi_page *map_ordinary_memory(void)
{
    void *memory = mmap(NULL, sizeof(struct ofpi_page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void describe_process(struct ofpi_page_header *header)
{
    header->rank = job_rank;
    memcpy(header->job, job_name, sizeof(job_name));
}

static struct owner *add_page(bool as_file)
{
    struct owner *owner = calloc(1, sizeof(*owner));

    if (!owner)
        return NULL;
    owner->fd = -1;
    if (as_file)
        owner->page = map_file(&owner->fd);
    if (!owner->page)
        owner->page = map_ordinary_memory();
    if (!owner->page) {
        free(owner);
        return NULL;
    }
    owner->page->header.version = OFPI_PAGE_VERSION;
    owner->page->header.pid = (uint32_t)getpid();
    describe_process(&owner->page->header);
    memcpy(owner->page->header.magic, "ofipystp", sizeof(owner->page->header.magic));
    owner->next = owners;
    owners = owner;
    return owner;
}

/* Memory that the system cannot give when it is first written would end the process: have it now. */
static bool memory_reserve(const struct owner *owner, bool *has_memory, const void *start, size_t length)
{
    if (!*has_memory && owner->fd >= 0)
        *has_memory =
            fallocate(owner->fd, 0, (off_t)((const char *)start - (const char *)owner->page), (off_t)length) == 0;
    return *has_memory || owner->fd < 0;
}

/* Readers that find `changes` odd, or changed, read again; ofipy/statistics/reader.py is the reader. */
static void change_start(struct owner *owner)
{
    _Atomic uint64_t *changes = &owner->page->header.changes;

    ofp_store_relaxed(changes, ofp_load_relaxed(changes) + 1);
    ofp_write_fence();
}
static void change_end(struct owner *owner)
{
    _Atomic uint64_t *changes = &owner->page->header.changes;

    ofp_store_release(changes, ofp_load_relaxed(changes) + 1);
}

/* --------------------------------------------------------------------------------------------------------- endpoints */

static struct ofpi_counts *find_counts_at(const struct owner *owner, uint32_t place)
{
    return &owner->page->blocks[place / OFPI_BLOCK_ENDPOINTS].counts[place % OFPI_BLOCK_ENDPOINTS];
}

static struct owner *find_owner(const void *memory)
{
    struct owner *owner = owners;

    while (owner && ((const char *)memory < (const char *)owner->page ||
                     (const char *)memory >= (const char *)(owner->page + 1)))
        owner = owner->next;
    return owner;
}

static uint32_t compute_slot(const struct owner *owner, const struct ofpi_counts *counts)
{
    size_t offset = (size_t)((const char *)counts - (const char *)owner->page->blocks);

    return (uint32_t)(offset / sizeof(struct ofpi_page_block) * OFPI_BLOCK_ENDPOINTS +
                      offset % sizeof(struct ofpi_page_block) / sizeof(struct ofpi_counts));
}

/* A free place with memory, in a page that exists. */
static struct ofpi_counts *find_place(struct owner **found)
{
    for (struct owner *owner = owners; owner; owner = owner->next)
        for (uint32_t place = 0; place < OFPI_PAGE_ENDPOINTS; place++) {
            uint32_t block = place / OFPI_BLOCK_ENDPOINTS;

            if (owner->has_endpoint[place])
                continue;
            if (!memory_reserve(owner, &owner->has_memory[block], &owner->page->blocks[block],
                                sizeof(*owner->page->blocks)))
                break;
            owner->has_endpoint[place] = true;
            *found = owner;
            return find_counts_at(owner, place);
        }
    return NULL;
}

static void clear_parts(struct ofpi_counts *counts)
{
    memset(counts, 0, sizeof(*counts));
    for (uint32_t row = 0; row < OFPI_ROWS; row++)
        memset(ofpi_sizes_find(counts, row), 0, sizeof(struct ofpi_sizes));
    memset(ofpi_page_entry_find(counts), 0, sizeof(struct ofpi_page_endpoint));
}

static void copy_text(char *target, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(target, text, length);
    memset(target + length, 0, size - length);
}

struct ofpi_counts *ofpi_counts_open(const struct ofp_info *info)
{
    bool as_file = ofpi_param_get_bool("STATS");
    struct ofpi_page_endpoint *entry;
    struct ofpi_counts *counts;
    struct owner *owner;

    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    counts = find_place(&owner);
    if (!counts && add_page(as_file))
        counts = find_place(&owner);
    /* The memory file exists, but the system has no memory for its blocks. */
    if (!counts && as_file && add_page(false))
        counts = find_place(&owner);
    if (counts) {
        entry = ofpi_page_entry_find(counts);
        change_start(owner);
        entry->number = ++last_number;
        entry->opened = ofpi_clock_read();
        entry->offloads = info->offloads_matching;
        copy_text(entry->provider, sizeof(entry->provider), info->provider);
        entry->state = OFPI_SLOT_OPEN;
        change_end(owner);
    }
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
    return counts;
}

void ofpi_counts_set_name(struct ofpi_counts *counts, const char *name)
{
    struct owner *owner;

    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    owner = find_owner(counts);
    change_start(owner);
    copy_text(ofpi_page_entry_find(counts)->name, sizeof(ofpi_page_entry_find(counts)->name), name);
    change_end(owner);
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
}

static void add_words(void *sum, const void *words, size_t size)
{
    for (size_t i = 0; i < size / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)words)[i];
}

static void add_parts(struct ofpi_counts *sum, struct ofpi_counts *counts)
{
    uint64_t last = sum->last_progress > counts->last_progress ? sum->last_progress : counts->last_progress;

    add_words(sum, counts, sizeof(*sum));
    sum->last_progress = last;
    for (uint32_t row = 0; row < OFPI_ROWS; row++)
        add_words(ofpi_sizes_find(sum, row), ofpi_sizes_find(counts, row), sizeof(struct ofpi_sizes));
    add_words(&ofpi_page_entry_find(sum)->levels, &ofpi_page_entry_find(counts)->levels, sizeof(struct ofpi_levels));
}

static struct ofpi_counts *find_sum(const struct owner *owner, const char *provider)
{
    for (uint32_t place = 0; place < OFPI_PAGE_ENDPOINTS; place++) {
        struct ofpi_counts *counts = find_counts_at(owner, place);

        if (owner->has_endpoint[place] && ofpi_page_entry_find(counts)->state == OFPI_SLOT_CLOSED &&
            strcmp(ofpi_page_entry_find(counts)->provider, provider) == 0)
            return counts;
    }
    return NULL;
}

/* A closed endpoint has no queues. */
static void clear_levels(struct ofpi_counts *counts)
{
    struct ofpi_levels *levels = &ofpi_page_entry_find(counts)->levels;

    counts->peers_up = 0;
    levels->posted_receives = levels->unexpected_messages = levels->unexpected_bytes = 0;
    levels->announced_messages = levels->backlog = levels->pending = levels->packet_buffers = 0;
}

void ofpi_counts_close(struct ofpi_counts *counts)
{
    struct ofpi_page_endpoint *entry;
    struct ofpi_counts *sum;
    struct owner *owner;

    if (!counts)
        return;
    entry = ofpi_page_entry_find(counts);
    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    owner = find_owner(counts);
    OFPI_CHECK(owner && owner->has_endpoint[compute_slot(owner, counts)]);
    change_start(owner);
    clear_levels(counts);
    sum = find_sum(owner, entry->provider);
    if (sum) {
        add_parts(sum, counts);
        clear_parts(counts);
        owner->has_endpoint[compute_slot(owner, counts)] = false;
    } else {
        /* The first of its provider in this page becomes the sum itself. */
        entry->state = OFPI_SLOT_CLOSED;
        entry->number = 0;
        entry->opened = 0;
        memset(entry->name, 0, sizeof(entry->name));
    }
    change_end(owner);
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
}

/* ------------------------------------------------------------------------------------------------------------- peers */

static struct ofpi_page_peer *find_peer_entry(struct ofpi_peer_counts *peer)
{
    return OFP_CONTAINER_OF(peer, struct ofpi_page_peer, counts);
}

static struct ofpi_page_peer *find_peer_place(struct owner *owner)
{
    for (uint32_t place = 0; place < OFPI_PAGE_PEERS; place++) {
        uint32_t group = place / PEER_GROUP;

        if (owner->has_peer[place])
            continue;
        if (!memory_reserve(owner, &owner->has_peer_memory[group], &owner->page->peers[group * PEER_GROUP], 4096))
            return NULL;
        owner->has_peer[place] = true;
        return &owner->page->peers[place];
    }
    return NULL;
}

struct ofpi_peer_counts *ofpi_peer_counts_open(struct ofpi_counts *counts, const char *way, const char *address)
{
    struct ofpi_page_peer *peer;
    struct owner *owner;

    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    owner = find_owner(counts);
    peer = find_peer_place(owner);
    if (peer) {
        change_start(owner);
        copy_text(peer->way, sizeof(peer->way), way);
        copy_text(peer->address, sizeof(peer->address), address);
        peer->endpoint = ofpi_page_entry_find(counts)->number;
        change_end(owner);
    }
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
    return peer ? &peer->counts : &counts->others;
}

void ofpi_peer_counts_set_way(struct ofpi_counts *counts, struct ofpi_peer_counts *peer, const char *way)
{
    struct ofpi_page_peer *entry = find_peer_entry(peer);
    struct owner *owner;

    if (peer == &counts->others)
        return;
    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    owner = find_owner(peer);
    change_start(owner);
    copy_text(entry->way, sizeof(entry->way), way);
    change_end(owner);
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
}

void ofpi_peer_counts_close(struct ofpi_counts *counts, struct ofpi_peer_counts *peer)
{
    struct owner *owner;

    if (peer == &counts->others)
        return;
    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    owner = find_owner(peer);
    change_start(owner);
    add_words(&counts->others, peer, sizeof(*peer));
    owner->has_peer[find_peer_entry(peer) - owner->page->peers] = false;
    memset(find_peer_entry(peer), 0, sizeof(struct ofpi_page_peer));
    change_end(owner);
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
}

/* ----------------------------------------------------------------------------------------------------- whole process */

void ofp_process_describe(const char *job, int32_t rank)
{
    ofpi_process_lock_acquire(OFPI_LOCK_PAGES);
    copy_text(job_name, sizeof(job_name), job);
    job_rank = rank;
    for (struct owner *owner = owners; owner; owner = owner->next) {
        change_start(owner);
        describe_process(&owner->page->header);
        change_end(owner);
    }
    ofpi_process_lock_release(OFPI_LOCK_PAGES);
}

/*
 * Objects of the parent still point into its pages. The memory there is the child's own from now on, and nobody reads
 * it. The pages are not listed any more: endpoints of the child get new ones.
 */
void ofpi_pages_forked(void)
{
    struct owner *owner = owners;

    owners = NULL;
    for (; owner; owner = owner->next) {
        if (owner->fd < 0)
            continue;
        mmap(owner->page, sizeof(struct ofpi_page), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        close(owner->fd);
    }
}
