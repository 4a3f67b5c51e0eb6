/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locks of the whole process, in one list that is held across fork. A child has only the thread that forked, so a
 * lock that another thread held would never be released there. Therefore the thread that forks acquires all of them
 * before, in the order of the list, and both processes release them: in the child the data that they guard are
 * consistent.
 *
 * Every lock that belongs to no single object is one of these. Providers and hooks register theirs by `hold_in_fork`
 * (ofipy/provider.h).
 */
#ifndef OFPI_PROCESS_LOCK_H
#define OFPI_PROCESS_LOCK_H

#include <pthread.h>

/* In lock order, the outermost first: the holder of a lock may acquire only those below it. */
enum ofpi_process_lock {
    OFPI_LOCK_PROVIDERS, /* provider_registry.c; its holder calls a provider's entry function */
    /* The locks of providers and hooks have this place in the order: their holders may call the core. */
    OFPI_LOCK_LINK_SETS,     /* link_set.c */
    OFPI_LOCK_LINK_KEYS,     /* link_keys.c */
    OFPI_LOCK_TABLES,        /* provider_tables.c */
    OFPI_LOCK_HOOKS,         /* hooks.c */
    OFPI_LOCK_REQUEST_SLOTS, /* request_slots.c; also acquired while a domain's lock is held */
    OFPI_LOCK_ROSTERS,       /* roster.c; also acquired while a domain's lock is held */
    OFPI_LOCK_PAGES,         /* page.c; also acquired while a domain's lock is held */
    OFPI_LOCK_PARAMS,        /* param.c */
    OFPI_LOCK_REASONS,       /* reason.c */
    OFPI_LOCK_LOG,           /* log.c */
    OFPI_LOCK_COUNT,
};

/* Not within a call of fork: the thread holds all the locks, and would wait for itself. */
void ofpi_process_lock_acquire(enum ofpi_process_lock which);
void ofpi_process_lock_release(enum ofpi_process_lock which);

/* Register a lock of a provider or a hook, before its first use. Any thread. */
void ofpi_process_lock_register(pthread_mutex_t *lock);

/* For tests: the lock at a place of the whole list, in lock order; NULL: there is no such place. */
pthread_mutex_t *ofpi_process_lock_at(unsigned place);

#endif
