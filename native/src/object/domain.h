/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's own view of a domain. One lock, `domain->lock`, guards every field here and of what the domain owns, except where a
 * remark says otherwise.
 */
#ifndef OFPI_DOMAIN_H
#define OFPI_DOMAIN_H

#include <errno.h>
#include <pthread.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/reactor.h"
#include "base/reserve.h"
#include "base/timer.h"
#include "object/fork.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

struct ofp_counter;
struct ofp_request;
struct ofpi_domain;
struct ofpi_endpoint;
struct ofpi_peer;
struct ofpi_pending;

/*
 * Calls from lower layers to upper ones. Each call that goes upwards is a row of this table. One constant table serves
 * all domains; open/domain_open.c sets it when a domain opens.
 */
struct ofpi_upper {
    /* Start deferred work that is due, never from within a provider's callback; returns how many. */
    int (*start_due)(struct ofpi_domain *domain);
    /* Post what the backlogs of an endpoint hold; returns how many operations moved. */
    int (*post_backlogs)(struct ofpi_endpoint *endpoint);
    /* The counter closes: work that waits for it or would change it ends as cancelled. */
    void (*counter_closes)(struct ofp_counter *counter);
    /* A request has finished that nobody wants any more. */
    void (*request_released)(struct ofp_request *request);
    /* The transport has given back a receive that it was asked for, to be posted again. */
    void (*receive_recalled)(struct ofpi_pending *pending);

    /* Of an endpoint of type MSG. Whether this side asked for the end. */
    bool (*connection_ends_here)(const struct ofpi_endpoint *endpoint);
    /* After ofp_shutdown: tell the provider once nothing is kept back here. */
    void (*connection_finish)(struct ofpi_endpoint *endpoint);
    void (*connection_up)(struct ofpi_endpoint *endpoint);
    /* `error`: what its operations end with; `reason`: what the provider said, 0 when it did what ofp_shutdown asked for. */
    void (*connection_lost)(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text);
    /* After its loss: end the receives that are posted, since nothing more will come. */
    void (*connection_end_receives)(struct ofpi_endpoint *endpoint);

    /* Of an endpoint with hooks. As ofpi_endpoint_post. */
    int (*hooks_post)(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
    void (*hooks_peer_changed)(struct ofpi_peer *peer, enum ofp_peer_state before, int error);
    /* A copy of the core's own is about to be given back. */
    void (*hooks_released)(struct ofpi_endpoint *endpoint, void *memory, size_t length);
};

/* States of the helper thread; progress/helper.c. */
enum ofpi_helper_state {
    OFPI_HELPER_NONE,   /* no helper thread */
    OFPI_HELPER_WATCH,  /* the application is active; it looks again in a millisecond */
    OFPI_HELPER_PARKED, /* the application sleeps inside a wait: nothing to do until it is kicked */
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

    struct ofpi_hook_list *hooks; /* of its endpoints; owned, constant; NULL: none */
    size_t hook_peer_size;        /* bytes that they have of each peer; constant */
    uint64_t connect_ns;          /* for so long a peer that is not there is asked again; constant */

    struct ofp_list endpoints, receive_contexts, queues, vectors, counters, event_queues, passives;
    uint32_t endpoint_count;
    uint32_t next_endpoint_id;
    uint64_t last_request; /* handle of the newest connection request; passive.c */
    struct ofpi_regions regions;
    struct ofpi_reserve
        entries; /* struct ofpi_entry: completions that nobody has read yet; one for each operation under way */
    struct ofpi_pool pendings;
    struct ofpi_pool works; /* deferred.c */
    struct ofp_list due; /* struct ofpi_threshold: of those of `works` whose counter has reached it, not yet started */
    struct ofp_list free_requests;
    struct ofpi_request_chunk *request_chunks; /* request_slots.c */

    /* progress.c */
    struct ofpi_reactor reactor;
    struct ofpi_timers timers;
    uint64_t round_ticks;            /* when the round under way began */
    uint64_t reactor_ticks;          /* when the kernel was last asked */
    _Atomic uint64_t progress_count; /* read by the helper without the lock */
    _Atomic bool look_wanted;        /* likewise: something that was posted waits for a round of progress */
    bool in_progress;                /* provider callbacks may not start another round */
    bool no_space;                   /* the last round left operations that wait for room at a transport */
    uint64_t space_ticks;            /* while no_space: when one of them last got some, or the first began to wait */
    struct ofp_list to_flush;        /* endpoints, by flush_node: to be flushed before the domain is let go */
    bool endpoints_armed;            /* every endpoint was armed and nothing disarmed them since */
    uint32_t armed_queues;           /* queues whose user sleeps on their descriptor */

    /* Waiting threads; wait.c. */
    uint64_t spin_ns, spin_limit_ns; /* of the next wait; OFIPY_SPIN_TIME */
    uint64_t short_sleeps;
    bool leader;          /* one thread sleeps, or is about to, on the epoll descriptor */
    bool leader_notified; /* the leader's eventfd was written during this sleep */
    uint32_t followers;
    uint32_t waiting;            /* threads inside ofpi_domain_wait: closing waits until they have left */
    _Atomic uint32_t generation; /* the futex of the followers; every completion that finds any advances it */
    int notify_fd;               /* eventfd in the reactor: wakes the leader */
    struct ofp_watch notify_watch;
    uint64_t sleeps, wakeups;

    /* helper.c */
    enum ofpi_helper_state helper_state;
    bool helper_stop;
    int helper_fd;
    pthread_t helper;
};

/* As in domain->owner. */
uint64_t ofpi_thread_identify(void);
/*
 * Every public call on the domain starts with these, and ends with ofpi_domain_leave (progress.h): -OFP_EFORKED, -OFP_ETHREAD, -ECANCELED, or 0 with the lock
 * held. -ENOLCK: `at_once`, and another thread holds it.
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
/* Release the lock at once, since the call is refused. */
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
