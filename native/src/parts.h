/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's small parts, each one file: pool, ids, parameters, log, clock, timers, reactor, regions, address vector.
 * Unless said otherwise the caller holds the domain's lock.
 */
#ifndef OFPI_PARTS_H
#define OFPI_PARTS_H

#include "check.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

/* ------------------------------------------------------------------------------------------------ pool.c
 * Objects of one size with ids that a peer may name. An id is index and generation, so that a stale or invented one
 * is found out; 0 is never an id. Grows by chunks, addresses never move; no allocation once warm. Objects come zeroed.
 * No locking of its own.
 */
struct ofpi_pool {
    size_t object_size;
    uint32_t chunk_count, chunk_capacity, free_head, live;
    char **chunks;
    struct ofpi_pool_slot *slots; /* generation and free link of every object */
};
void ofpi_pool_init(struct ofpi_pool *pool, size_t object_size);
void ofpi_pool_fini(struct ofpi_pool *pool);
void *ofpi_pool_take(struct ofpi_pool *pool, uint64_t *id); /* NULL: out of memory */
void ofpi_pool_give(struct ofpi_pool *pool, uint64_t id);
void *ofpi_pool_find(const struct ofpi_pool *pool, uint64_t id); /* NULL: not a live object */
uint32_t ofpi_pool_live(const struct ofpi_pool *pool);
/* The first live object at index >= *cursor, or NULL; *cursor moves behind it. */
void *ofpi_pool_next(const struct ofpi_pool *pool, uint32_t *cursor);

/* ------------------------------------------------------------------------------------------------ ids.c
 * Objects by ids of 32 bits that programs hold on to: an index in the low 20 bits, above it a generation, so that an id
 * whose object is gone names nothing, for ever. Slots that were never used come first while there is room for them, then
 * the one freed longest ago. A slot that has been through all its generations is retired. No locking of its own.
 */
#define OFPI_ID_INDEX_BITS 20
#define OFPI_ID_SLOTS (1u << OFPI_ID_INDEX_BITS)
/* Of 4096 one is left out: OFP_PEER_ANY and OFP_PEER_UNKNOWN are no ids. */
#define OFPI_ID_GENERATIONS 4095u
struct ofpi_id_slot {
    void *object; /* NULL: free, or retired */
    uint32_t id;
    uint32_t next_free;
};
struct ofpi_ids {
    struct ofpi_id_slot *slots;
    uint32_t capacity, used, live; /* slots; those that ever were in use; those that are */
    uint32_t free_first, free_last;
    uint32_t first_generation; /* of every slot */
};
/* No id has a lower index than the first; 0 is an id when both are 0. */
void ofpi_ids_init(struct ofpi_ids *ids, uint32_t first_index, uint32_t first_generation);
void ofpi_ids_fini(struct ofpi_ids *ids);
/* -ENOMEM; -OFP_EEXHAUSTED: every slot is in use or retired. */
int ofpi_ids_add(struct ofpi_ids *ids, void *object, uint32_t *id);
void ofpi_ids_remove(struct ofpi_ids *ids, uint32_t id); /* an id in use */
/* The first object at a slot >= *cursor, or NULL; *cursor moves behind it. */
void *ofpi_ids_next(const struct ofpi_ids *ids, uint32_t *cursor);
static inline uint32_t ofpi_id_index(uint32_t id) { return id & (OFPI_ID_SLOTS - 1); }
/* NULL: not an id in use. */
static inline void *ofpi_ids_find(const struct ofpi_ids *ids, uint32_t id)
{
    uint32_t index = ofpi_id_index(id);

    return index < ids->capacity && ids->slots[index].id == id ? ids->slots[index].object : NULL;
}

/* ------------------------------------------------------------------------------------------------ param.c
 * Any thread; own lock. Value: environment OFIPY_<NAME>, else ofp_param_set, else the default. A value of the environment
 * that is malformed or out of range logs a warning that names it and the range, and the default holds.
 */
/* Of a list ended by a NULL name: the first whose default is not in its range, NULL when all are right. */
const char *ofpi_param_misdeclared(const struct ofp_param *params);
void ofpi_param_declare(const struct ofp_param *params); /* likewise; twice is harmless */
const char *ofpi_param_string(const char *name);
uint64_t ofpi_param_size(const char *name); /* "64k", "1m", "2g"; powers of 1024 */
int64_t ofpi_param_int(const char *name);
bool ofpi_param_bool(const char *name);

/* ------------------------------------------------------------------------------------------------ log.c
 * Any thread; own lock; a ring of records that drops the oldest and counts what it dropped.
 */
void ofpi_log(enum ofp_log_level level, const char *provider, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ------------------------------------------------------------------------------------------------ reason.c
 * Any thread; own lock. The provider_error that stands for a sentence.
 */
int ofpi_reason_keep(const char *text);

/* ------------------------------------------------------------------------------------------------ strerror.c
 * What the initiator reads of the codes with which its peer's ofpi_remote_access refused; NULL: none of them.
 */
const char *ofpi_refusal_text(int code);

/* ------------------------------------------------------------------------------------------------ host.c
 * ofp_host_id of the contents of one file and the inode of another. Any thread.
 */
int ofpi_host_id_of(const char *boot_path, const char *space_path, uint64_t *id, char *text, size_t text_size);

/* ------------------------------------------------------------------------------------------------ clock.c */
uint64_t ofpi_now(void); /* CLOCK_MONOTONIC, ns */

/* ------------------------------------------------------------------------------------------------ timer.c
 * Binary heap. Time is an argument, so that tests own the clock.
 */
struct ofpi_timers {
    struct ofp_timer **heap; /* heap[0] unused: position 0 means not running */
    uint64_t count, capacity;
};
void ofpi_timers_init(struct ofpi_timers *timers);
void ofpi_timers_fini(struct ofpi_timers *timers);
int ofpi_timers_start(struct ofpi_timers *timers, struct ofp_timer *timer); /* restarts a running one */
void ofpi_timers_stop(struct ofpi_timers *timers, struct ofp_timer *timer); /* harmless when not running */
/* Call `expired` of everything due at `now`, earliest first; returns how many. A callback may start and stop timers. */
int ofpi_timers_run(struct ofpi_timers *timers, uint64_t now);
uint64_t ofpi_timers_next(const struct ofpi_timers *timers); /* deadline of the earliest, UINT64_MAX: none */

/* ------------------------------------------------------------------------------------------------ reactor.c
 * One epoll descriptor with the watches of a domain and one timerfd. The epoll descriptor itself is readable when any
 * watch is ready or the armed deadline passed. A watch may be removed from within any callback, its own included, even
 * when it is in the batch being dispatched.
 */
struct ofpi_reactor {
    int epoll_fd;
    int timer_fd;
    uint64_t armed_deadline;  /* UINT64_MAX: timerfd disarmed */
    struct ofp_watch **batch; /* being dispatched; entries of removed watches are set NULL */
    int batch_count;
    uint32_t watch_count;
};
int ofpi_reactor_open(struct ofpi_reactor *reactor);
void ofpi_reactor_close(struct ofpi_reactor *reactor);
int ofpi_reactor_add(struct ofpi_reactor *reactor, struct ofp_watch *watch);
int ofpi_reactor_modify(struct ofpi_reactor *reactor, struct ofp_watch *watch);
void ofpi_reactor_remove(struct ofpi_reactor *reactor, struct ofp_watch *watch);
/* Ask the kernel without waiting, call `ready` of what is; returns how many. Clears an expired timerfd. */
int ofpi_reactor_poll(struct ofpi_reactor *reactor);
/* Make epoll_fd readable at `deadline` (CLOCK_MONOTONIC ns; UINT64_MAX: never). No system call when unchanged. */
void ofpi_reactor_arm_deadline(struct ofpi_reactor *reactor, uint64_t deadline);

/* ------------------------------------------------------------------------------------------------ region.c
 * The memory-region table of a domain. Ids begin at a random generation, so that one of another domain is likely to be
 * none here; id 0 is the process's address space and has no entry. Keys are random 64-bit (getrandom) or asked for; 0 means
 * none.
 */
#define OFPI_ACCESS_REMOTE (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE)
struct ofpi_region {
    struct ofp_region base;                         /* first: the provider's view */
    uint32_t uses;                                  /* operations in flight that point into it */
    bool open;                                      /* false while it is being closed */
    bool has_key;                                   /* peers may find it, by base.device[0].key */
    struct ofp_list reached;                        /* struct ofp_remote_access: peers inside */
    struct ofp_counter *remote_read, *remote_write; /* what counts peers' accesses; NULL: nothing. Not held */
    struct ofpi_region *next_by_key;
};
struct ofpi_regions {
    struct ofpi_ids ids;
    struct ofpi_region **by_key; /* chains of those with has_key; `chains` of them, a power of two */
    uint32_t chains;
    uint32_t key_count; /* of `keys`, those not given out yet */
    uint64_t keys[16];
};
void ofpi_regions_init(struct ofpi_regions *regions);
void ofpi_regions_fini(struct ofpi_regions *regions);
/*
 * Takes an id for a region whose base, length and domain the caller fills. NULL with *error: -ENOMEM (also without random
 * numbers), -OFP_EEXHAUSTED.
 */
struct ofpi_region *ofpi_regions_add(struct ofpi_regions *regions, uint32_t access, int *error);
/* Enter it under its base.device[0].key. -OFP_ENOKEY: another one has that key. */
int ofpi_regions_enter_key(struct ofpi_regions *regions, struct ofpi_region *region);
void ofpi_regions_remove_key(struct ofpi_regions *regions, struct ofpi_region *region);
struct ofpi_region *ofpi_regions_find_key(const struct ofpi_regions *regions, uint64_t key); /* NULL: none */
void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region);
static inline struct ofpi_region *ofpi_regions_find(const struct ofpi_regions *regions, uint32_t id) /* NULL: none */
{
    return ofpi_ids_find(&regions->ids, id);
}
/* The counter ends: no region counts in it any longer. */
void ofpi_regions_forget_counter(struct ofpi_regions *regions, const struct ofp_counter *counter);
static inline void ofpi_region_hold(struct ofp_region *region)
{
    if (region)
        ((struct ofpi_region *)region)->uses++;
}
static inline void ofpi_region_release(struct ofp_region *region)
{
    if (!region)
        return;
    OFPI_CHECK(((struct ofpi_region *)region)->uses > 0);
    ((struct ofpi_region *)region)->uses--;
}

/* ------------------------------------------------------------------------------------------------ address_vector.c
 * Addresses by index (an id of ids.c, of generation 0 at first) and, through a hash, indices by address.
 */
struct ofpi_av_table;
struct ofpi_av_table *ofpi_av_table_new(void);
void ofpi_av_table_free(struct ofpi_av_table *table);
/* -ENOMEM, -OFP_EEXHAUSTED. */
int ofpi_av_table_insert(struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index);
int ofpi_av_table_find(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index);
int ofpi_av_table_remove(struct ofpi_av_table *table, uint32_t index);
/* The stored address, NULL when the index holds none. Valid until removed. */
const void *ofpi_av_table_lookup(const struct ofpi_av_table *table, uint32_t index, size_t *length);
/* The next index in use, from *cursor = 0 on; -ENOENT: no more. Entries may come and go meanwhile. */
int ofpi_av_table_next(const struct ofpi_av_table *table, uint32_t *cursor, uint32_t *index);
uint32_t ofpi_av_table_count(const struct ofpi_av_table *table);

#endif
