/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locks of the whole process: one list, held across fork. A child has none of its parent's other threads, so a lock that one of
 * them held would never be released there. The thread that forks takes all of them before, in the order of the list, and both
 * processes release them: the child finds what they guard whole.
 *
 * A lock that is not of one object is one of these, or, of a provider or a hook, is registered by `hold_in_fork` (ofipy/provider.h).
 */
#ifndef OFPI_PROCESS_LOCK_H
#define OFPI_PROCESS_LOCK_H

#include <pthread.h>

/* From the outermost to the innermost: who holds one may take those below it. */
enum ofpi_process_lock {
    OFPI_LOCK_PROVIDERS, /* provider_registry.c; its holder calls a provider's entry */
    /* Here those that providers and hooks register: their holders may call the core. */
    OFPI_LOCK_LINK_SETS,     /* link_set.c */
    OFPI_LOCK_LINK_KEYS,     /* link_keys.c */
    OFPI_LOCK_TABLES,        /* provider_tables.c */
    OFPI_LOCK_HOOKS,         /* hooks.c */
    OFPI_LOCK_REQUEST_SLOTS, /* request_slots.c; also taken inside a domain's lock */
    OFPI_LOCK_ROSTERS,       /* roster.c; also taken inside a domain's lock */
    OFPI_LOCK_PARAMS,        /* param.c */
    OFPI_LOCK_REASONS,       /* reason.c */
    OFPI_LOCK_LOG,           /* log.c */
    OFPI_LOCK_COUNT,
};

/* Not within a call of fork: the calling thread would wait for itself. */
void ofpi_process_lock_acquire(enum ofpi_process_lock which);
void ofpi_process_lock_release(enum ofpi_process_lock which);

/* For a lock of a provider or a hook, before it is used for the first time. Any thread. */
void ofpi_process_lock_register(pthread_mutex_t *lock);

/* For tests: the lock at a place of the whole list, in the order in which fork takes them; NULL: behind the last. */
pthread_mutex_t *ofpi_process_lock_at(unsigned place);

#endif
