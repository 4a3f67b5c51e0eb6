/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's private part of a domain. The domain's lock, `domain->lock`, guards every member here, and every object
 * that the domain owns, except where a comment says otherwise.
 */
#ifndef OFPI_DOMAIN_H
#define OFPI_DOMAIN_H

#include <errno.h>
#include <pthread.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/page.h"
#include "base/pool.h"
#include "base/reactor.h"
#include "base/reserve.h"
#include "base/timer.h"
#include "object/fork.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

struct ofp_counter;
struct ofp_operation;
struct ofp_request;
struct ofpi_domain;
struct ofpi_endpoint;
struct ofpi_peer;
struct ofpi_pending;

/*
 * Calls from lower layers to upper ones. Every such call is a row of this table. One constant table serves all domains;
 * open/domain_open.c sets it when a domain opens.
 */
struct ofpi_upper {
    /* Start deferred work that is due; returns how many. Never called from within a provider's callback. */
    int (*start_due)(struct ofpi_domain *domain);
    /* Run turns of collectives and groups that are due; returns how many moved. Never called from within a provider's callback. */
    int (*run_turns)(struct ofpi_domain *domain);
    /* Post the backlogs of an endpoint; returns how many operations were posted. */
    int (*post_backlogs)(struct ofpi_endpoint *endpoint);
    /* The counter closes: cancel deferred work that waits for it or would change it. */
    void (*counter_closes)(struct ofp_counter *counter);
    /* Collectives as operations: check the record, or start it. 0 or a negative error; -EAGAIN: 64 of the group run. */
    int (*group_check)(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
    int (*group_post)(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
    /* An abandoned request has finished. */
    void (*request_released)(struct ofp_request *request);
    /* The transport has returned a receive, as the core had requested, so that it is posted again. */
    void (*receive_recalled)(struct ofpi_pending *pending);

    /* Type MSG: whether this side has called ofp_shutdown. */
    bool (*connection_ends_here)(const struct ofpi_endpoint *endpoint);
    /* Type MSG, after ofp_shutdown: shut the provider's connection down as soon as the backlog is empty. */
    void (*connection_finish)(struct ofpi_endpoint *endpoint);
    void (*connection_up)(struct ofpi_endpoint *endpoint);
    /*
     * Type MSG. `error`: the error with which its operations end. `reason`: the error that the provider reported; 0
     * after a shutdown that this side requested.
     */
    void (*connection_lost)(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text);
    /* Type MSG, after the connection was lost: end the posted receives, since no message can arrive any more. */
    void (*connection_end_receives)(struct ofpi_endpoint *endpoint);

    /* Endpoints with hooks: as ofpi_endpoint_post. */
    int (*hooks_post)(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
    void (*hooks_peer_changed)(struct ofpi_peer *peer, enum ofp_peer_state before, int error);
    /* The core is about to free a copy of a payload. */
    void (*hooks_released)(struct ofpi_endpoint *endpoint, void *memory, size_t length);
};

/* States of the helper thread; progress/helper.c. */
enum ofpi_helper_state {
    OFPI_HELPER_NONE,   /* no helper thread */
    OFPI_HELPER_WATCH,  /* the application is active; the thread checks again in a millisecond */
    OFPI_HELPER_PARKED, /* the application sleeps inside a wait: the thread sleeps until it is notified */
    OFPI_HELPER_ARMED   /* asleep on the domain's descriptor */
};

struct ofpi_domain {
    struct ofp_domain base; /* first: the provider's view */
    struct ofp_info info;   /* base.info */
    const struct ofpi_upper *upper;
    struct ofpi_lock lock;
    bool retired;
    uint32_t threading;
    _Atomic uint64_t owner;   /* OFP_THREAD_DOMAIN: the thread it is bound to */
    uint64_t fork_generation; /* constant; differs from ofpi_fork_generation in a child */

    struct ofpi_hook_list *hooks; /* hooks of its endpoints; owned, constant; NULL: none */
    size_t hook_peer_size;        /* private bytes of all hooks in each peer; constant */
    uint64_t connect_ns;          /* how long the core retries to connect to an absent peer; constant */

    struct ofp_list endpoints, receive_contexts, queues, vectors, counters, event_queues, passives;
    uint32_t endpoint_count;
    uint32_t next_endpoint_id;
    uint64_t last_request; /* handle of the newest connection request; passive.c */
    struct ofpi_regions regions;
    /* Struct ofpi_entry: completions that were not read yet; one is reserved for each operation in flight. */
    struct ofpi_reserve entries;
    struct ofpi_pool pendings;
    struct ofpi_pool works; /* deferred.c */
    struct ofp_list due; /* struct ofpi_threshold: works whose counter has reached it, and that were not started yet */
    struct ofp_list groups;    /* of all its endpoints */
    struct ofp_list due_turns; /* struct ofpi_turn: of collectives and groups */
    uint32_t next_group;       /* number of the next group */
    struct ofp_list free_requests;
    struct ofpi_request_chunk *request_chunks; /* request_slots.c */

    /* progress.c */
    struct ofpi_reactor reactor;
    struct ofpi_timers timers;
    uint64_t round_ticks;            /* start of the current round */
    uint64_t reactor_ticks;          /* when the reactor was last polled */
    _Atomic uint64_t progress_count; /* read by the helper without the lock */
    _Atomic bool look_wanted;        /* likewise: a posted operation needs a round of progress */
    bool in_progress;                /* provider callbacks may not start another round */
    bool no_space;                   /* the last round left operations that wait for space at a transport */
    uint64_t space_ticks;     /* while no_space: when one of them last got space, or the first one began to wait */
    struct ofp_list to_flush; /* endpoints, by flush_node, to be flushed before the domain's lock is released */
    bool endpoints_armed;     /* all endpoints are armed */
    uint32_t armed_queues;    /* queues on whose descriptor the application sleeps */

    /* Waiting threads; wait.c. */
    uint64_t spin_ns, spin_limit_ns; /* of the next wait; the value of OFIPY_SPIN_TIME */
    uint64_t short_sleeps;
    bool leader;          /* one thread, the leader, sleeps or is about to sleep on the epoll descriptor */
    bool leader_notified; /* the leader's eventfd was written during this sleep */
    uint32_t followers;
    uint32_t waiting;            /* threads inside ofpi_domain_wait: closing waits until they have left */
    _Atomic uint32_t generation; /* the futex of the followers; a completion advances it if there are followers */
    int notify_fd;               /* eventfd in the reactor: wakes the leader */
    struct ofp_watch notify_watch;
    uint64_t sleeps, wakeups;

    /* levels.c */
    uint64_t levels_ticks;      /* when levels of its endpoints were last written */
    struct ofpi_levels divided; /* how much of what the domain counts its endpoints' levels have; other members are 0 */

    /* helper.c */
    enum ofpi_helper_state helper_state;
    bool helper_stop;
    int helper_fd;
    pthread_t helper;
};

/* The number of the calling thread, as stored in domain->owner. */
uint64_t ofpi_thread_identify(void);
/*
 * Every public call on the domain starts with one of these, and ends with ofpi_domain_leave (progress.h). 0, with the
 * lock held; -OFP_EFORKED, -OFP_ETHREAD, -ECANCELED (retired); -ENOLCK: `at_once` is set, and another thread holds the
 * lock. ofpi_domain_check acquires no lock.
 */
int ofpi_domain_check(struct ofpi_domain *domain);
static inline int ofpi_domain_enter_as(struct ofpi_domain *domain, bool at_once)
{
    if (__builtin_expect(domain->fork_generation != ofpi_fork_generation, 0) || domain->threading != OFP_THREAD_SAFE) {
        int result = ofpi_domain_check(domain);

        if (result)
            return result;
    }
    if (!at_once)
        ofpi_lock_acquire(&domain->lock);
    else if (!ofpi_lock_try(&domain->lock))
        return -ENOLCK;
    if (__builtin_expect(domain->retired, 0)) {
        ofpi_lock_release(&domain->lock);
        return -ECANCELED;
    }
    return 0;
}
static inline bool ofpi_domain_is_held(struct ofpi_domain *domain) { return ofpi_lock_is_held(&domain->lock); }
static inline int ofpi_domain_enter(struct ofpi_domain *domain) { return ofpi_domain_enter_as(domain, false); }
/* Release the lock without the work of ofpi_domain_leave, because the call is refused. */
static inline void ofpi_domain_refuse(struct ofpi_domain *domain) { ofpi_lock_release(&domain->lock); }
/* Whether a thread, here or outside the library, sleeps on the domain's descriptor and needs armed endpoints. */
static inline bool ofpi_domain_has_sleepers(const struct ofpi_domain *domain)
{
    return domain->leader || domain->armed_queues || domain->helper_state == OFPI_HELPER_ARMED;
}
/* Whether endpoints of the domain are connected to one peer each. */
static inline bool ofpi_domain_has_connections(const struct ofpi_domain *domain)
{
    return domain->info.ep_types & OFP_EP_MSG;
}

#endif
