/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's own view of a domain and of what it owns. One lock, `domain->lock`, guards every field here except where a
 * remark says otherwise.
 */
#ifndef OFPI_DOMAIN_H
#define OFPI_DOMAIN_H

#include <errno.h>
#include <pthread.h>

#include "check.h"
#include "completion.h"
#include "lock.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"
#include "ofipy/request.h"
#include "parts.h"
#include "receive_context.h"

/* What the helper thread is doing; helper.c. */
enum ofpi_helper_state {
    OFPI_HELPER_NONE,   /* no helper thread */
    OFPI_HELPER_WATCH,  /* the application is active; it looks again in a millisecond */
    OFPI_HELPER_PARKED, /* the application sleeps inside a wait: nothing to do until it is kicked */
    OFPI_HELPER_ARMED   /* asleep on the domain's descriptor */
};

struct ofpi_domain {
    struct ofp_domain base; /* first: the provider's view */
    struct ofp_info info;   /* base.info */
    struct ofpi_lock lock;
    bool retired;
    uint32_t threading;
    _Atomic uint64_t owner;   /* OFP_THREAD_DOMAIN: the thread it is bound to */
    uint64_t fork_generation; /* constant; differs from ofpi_fork_generation in a child */

    struct ofpi_hook_list *hooks; /* of its endpoints; owned, constant; NULL: none */

    struct ofp_list endpoints, receive_contexts, queues, vectors, counters, event_queues, passives;
    uint32_t endpoint_count;
    uint32_t next_endpoint_id;
    uint64_t last_request; /* handle of the newest connection request; passive.c */
    struct ofpi_regions regions;
    struct ofpi_pool pendings;
    struct ofpi_pool works; /* deferred.c */
    struct ofp_list due;    /* those of `works` whose counter has reached its threshold, not yet started */
    struct ofp_list free_requests;
    struct ofpi_request_chunk *request_chunks; /* request_slots.c */

    /* progress.c */
    struct ofpi_reactor reactor;
    struct ofpi_timers timers;
    uint64_t reactor_ticks;          /* when the kernel was last asked */
    _Atomic uint64_t progress_count; /* read by the helper without the lock */
    bool in_progress;                /* provider callbacks may not start another round */
    struct ofp_list to_flush;        /* endpoints, by flush_node: to be flushed before the domain is let go */
    bool endpoints_armed;            /* every endpoint was armed and nothing disarmed them since */
    uint32_t armed_queues;           /* queues whose user sleeps on their descriptor */

    /* Waiting threads; wait.c. */
    uint64_t spin_ns, spin_limit_ns; /* of the next wait; OFIPY_SPIN_TIME */
    uint64_t short_sleeps;
    bool leader;          /* one thread sleeps, or is about to, on the epoll descriptor */
    bool leader_notified; /* the leader's eventfd was written during this sleep */
    uint32_t followers;
    uint32_t waiting;            /* threads inside ofpi_wait: closing waits until they have left */
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

/* The descriptor of a queue and whether its user sleeps on it; sleeper.c. */
struct ofpi_sleeper {
    bool armed;             /* its user sleeps on `epoll_fd` */
    bool event_set;         /* event_fd is readable */
    int event_fd, epoll_fd; /* -1 until the descriptor is first asked for */
    int timer_fd;           /* looks by the clock; -1: the domain's descriptor tells of work */
};

struct ofp_cq {
    struct ofpi_domain *domain;
    struct ofp_list node;        /* in domain->queues */
    uint32_t uses;               /* endpoints bound to it */
    struct ofp_completion *ring; /* `size` entries, a power of two */
    uint64_t size, head, count;
    struct ofp_list spill; /* chunks behind the ring, oldest first; completion_queue.c */
    uint64_t spilled;
    struct ofp_list finished; /* requests with `notify` */
    bool signalled;           /* ofp_cq_signal, not yet consumed */
    bool closing;             /* waits end, calls are refused; set for good by retiring */
    uint32_t waiting;         /* threads in ofp_cq_wait */
    struct ofpi_sleeper sleeper;
};

struct ofp_av {
    struct ofpi_domain *domain;
    struct ofp_list node; /* in domain->vectors */
    uint32_t uses;
    bool auto_insert;
    struct ofpi_av_table *table; /* NULL: retired */
};

enum ofpi_request_state { OFPI_REQUEST_IDLE, OFPI_REQUEST_RUNNING, OFPI_REQUEST_FINISHED };

/*
 * A slot for requests, in use or in its domain's free list; request_slots.c. Its memory is never returned to the system, so
 * that any handle may be looked up at any time.
 */
struct ofp_request {
    struct ofp_completion completion;
    _Atomic uint32_t state;         /* enum ofpi_request_state; read without the lock */
    _Atomic uint32_t generation;    /* of its use: the upper half of the handle; read without the lock */
    uint32_t place;                 /* constant: the lower half of the handle */
    uint32_t runs;                  /* starts, over all uses: a waiter sees that what it waited for is over */
    struct ofp_list node;           /* free list, or the queue's list of finished requests */
    struct ofpi_domain *domain;     /* the endpoint may be closed before the request is taken */
    struct ofpi_endpoint *endpoint; /* valid while running or prepared */
    struct ofp_operation *prepared; /* the record of a prepared operation, NULL otherwise */
    bool notify, released;
    bool many; /* of a multi-receive buffer: FINISHED means that a completion is there, maybe not the last */
    struct ofp_list later; /* completions behind the first; request_many.c. Zero unless `many` */
};

static inline ofp_request_t ofpi_request_handle(const struct ofp_request *request)
{
    return (ofp_request_t)ofp_load_relaxed(&request->generation) << 32 | request->place;
}

struct ofpi_connection;
struct ofpi_passive;

struct ofpi_endpoint {
    struct ofp_endpoint base; /* first: the provider's view */
    struct ofp_info info;     /* base.info */
    struct ofpi_domain *domain;
    struct ofpi_endpoint *behind; /* whom it stands for as a handle: itself; an alias that is open, its endpoint */
    uint32_t aliases;             /* that stand for it; alias.c */
    struct ofp_list node;         /* in domain->endpoints, or in domain->receive_contexts */
    struct ofp_list flush_node;
    struct ofp_cq *tx_cq, *rx_cq;
    struct ofp_av *av;        /* NULL for type MSG */
    struct ofpi_hooks *hooks; /* owned; NULL: none */
    struct ofpi_receive_context *receive_context;
    struct ofpi_endpoint *shared; /* whose receive context that is; NULL: its own. Not owned */
    uint32_t sharers;             /* endpoints that use the receive context of this one */
    struct ofpi_peer **peers;     /* by address vector index without its generation, which each peer knows */
    uint32_t peer_capacity;
    struct ofpi_av_table *stranger_addresses; /* senders without an entry in `av`; created when the first one comes */
    struct ofpi_peer **strangers;
    uint32_t stranger_count;
    struct ofp_list backlogged; /* peers with a backlog that can be posted now */
    struct ofp_list removed;    /* peers whose address left the vector, until the endpoint closes */
    struct ofp_list sourceless; /* pending receives from any source, where the transport matches */
    uint64_t last_receive;      /* sequence of the last receive that the transport took */
    void *spare_bounces;        /* receive_offloaded.c */
    uint32_t spare_bounce_count;
    uint64_t tx_flags, rx_flags, tx_size;
    bool posts_beyond;  /* the post under way may wait here although the transmit queue is full; request.c */
    uint64_t in_flight; /* pending operations, backlog included */
    uint64_t backlog_count;
    uint32_t selective_completion; /* OFP_SELECTIVE_… */
    bool remote_events;            /* what peers read and write here enters rx_cq, also without data */
    bool closing;                  /* what ends from now on is cancelled; posts that wait for room give up */
    uint32_t waiting_for_room;     /* threads that do */
    bool ending;                   /* type MSG: ofp_shutdown waits until the backlog is empty */
    bool held_back;                /* the last post said that more would follow */
    bool work_is_stuck;            /* due work waits for room in the transmit queue; valid within ofpi_works_start */
    bool counted;                  /* one of `counters` is there; counter.c */
    struct ofp_counter *counters[OFP_COUNTER_CLASSES];
    struct ofp_eq *eq;                  /* may be NULL */
    struct ofpi_connection *connection; /* type MSG, owned; NULL otherwise */
    struct ofp_endpoint_statistics statistics;
};

struct ofpi_peer {
    struct ofp_peer base;     /* first: the provider's view */
    struct ofp_list backlog;  /* operations in the order posted, until the transport takes them */
    struct ofp_list pendings; /* operations the provider has taken */
    struct ofp_list node;     /* in endpoint->backlogged */
    /* What the receive context has of it, so that its loss costs by no more than that. */
    struct ofp_list announced; /* kept messages whose payload it still holds: struct ofpi_unexpected.payload.of_peer */
    struct ofp_list receives;  /* under way: struct ofpi_lent.of_peer */
    struct ofp_timer held;     /* runs while a hook holds the head of the backlog back; `node` is in no list then */
    uint32_t sending;          /* of `pendings`, those that are no receives */
    bool fenced;               /* the head of the backlog waits until nothing is `sending`; `node` is in no list then */
    bool named;                /* a receive has named it, and may be posted still */
    bool gone; /* its process is known dead or replaced, it has not come up since, nor was its address inserted again */
};

/*
 * An operation kept beyond its post. The provider's view first; the copies that it points to behind. `many` holds what is
 * more than one: local segments, their regions, remote segments.
 */
struct ofpi_pending {
    struct ofp_pending base;
    struct ofpi_endpoint *endpoint;
    bool posted;       /* the provider has it; otherwise it waits in the backlog */
    bool recalled;     /* a receive: the provider was asked to take it back, to be posted again */
    uint64_t sequence; /* a receive: its place among those of the endpoint */
    struct iovec iov_inline;
    struct ofp_region *region_inline;
    struct ofp_remote_segment remote_inline;
    void *many;
    void *inject_copy; /* OFP_INJECT in the backlog: the payload, owned */
};

/* ------------------------------------------------------------------------------------------------ domain.c, fork.c */

/* Number of forks since the library was loaded, as this process sees it. */
extern uint64_t ofpi_fork_generation;
void ofpi_fork_watch(void);

/*
 * Every public call on the domain starts and ends with these: -OFP_EFORKED, -OFP_ETHREAD, -ECANCELED, or 0 with the lock
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
void ofpi_domain_rearm(struct ofpi_domain *domain);
/* Somebody sleeps on the domain's descriptor, here or outside the library, and counts on the endpoints to be armed. */
static inline bool ofpi_domain_has_sleepers(const struct ofpi_domain *domain)
{
    return domain->leader || domain->armed_queues || domain->helper_state == OFPI_HELPER_ARMED;
}
void ofpi_domain_flush(struct ofpi_domain *domain);
/* Start what is due, never from within a provider's callback; returns how many; deferred.c. */
int ofpi_works_start(struct ofpi_domain *domain);
static inline void ofpi_domain_leave(struct ofpi_domain *domain)
{
    OFPI_CHECK(ofpi_domain_is_held(domain));
    if (__builtin_expect(!ofp_list_empty(&domain->due), 0))
        ofpi_works_start(domain);
    if (__builtin_expect(!ofp_list_empty(&domain->to_flush), 0))
        ofpi_domain_flush(domain);
    if (__builtin_expect(!domain->endpoints_armed && ofpi_domain_has_sleepers(domain), 0))
        ofpi_domain_rearm(domain);
    ofpi_lock_release(&domain->lock);
}

/* The same for calls on a queue, a vector or an endpoint, whose own end they may meet. */
static inline int ofpi_cq_enter(struct ofp_cq *cq)
{
    int result = ofpi_domain_enter(cq->domain);

    if (__builtin_expect(!result && cq->closing, 0)) {
        ofpi_domain_leave(cq->domain);
        result = -ECANCELED;
    }
    return result;
}
static inline int ofpi_av_enter(struct ofp_av *av)
{
    int result = ofpi_domain_enter(av->domain);

    if (!result && !av->table) {
        ofpi_domain_leave(av->domain);
        result = -ECANCELED;
    }
    return result;
}
static inline int ofpi_endpoint_enter(struct ofpi_endpoint *endpoint)
{
    int result = ofpi_domain_enter(endpoint->domain);

    if (__builtin_expect(!result && endpoint->closing, 0)) {
        ofpi_domain_leave(endpoint->domain);
        result = -ECANCELED;
    }
    return result;
}

/* ------------------------------------------------------------------------------------- endpoint.c, shared_context.c */

/* Whether endpoints of the domain are connected to one peer each. */
static inline bool ofpi_domain_connects(const struct ofpi_domain *domain) { return domain->info.ep_types & OFP_EP_MSG; }
/* Those have no address vector, the others one of the same domain. */
static inline bool ofpi_vector_fits(const struct ofpi_domain *domain, const struct ofp_av *av)
{
    return ofpi_domain_connects(domain) ? !av : av && av->domain == domain;
}

/* Open a receive context of the core's own. Zero: the defaults. */
int ofpi_endpoint_open_context(struct ofpi_endpoint *endpoint, uint64_t unexpected_limit, uint64_t min_multi_recv);
/* Of ofp_receive_context_open: it has no transmit side. */
static inline bool ofpi_endpoint_receives_only(const struct ofpi_endpoint *endpoint) { return !endpoint->tx_cq; }

/* -------------------------------------------------------------------------------------------------------- alias.c */

/*
 * The handle of a public call may be an alias: its flags are the handle's, all else belongs to `handle->behind`. The lock is
 * held.
 */
static inline bool ofpi_endpoint_is_alias(const struct ofpi_endpoint *handle) { return handle->behind != handle; }
void ofpi_alias_retire(struct ofpi_endpoint *alias);

/* ---------------------------------------------------------------------------------------------------- operation.c */

/* A resolved operation with the memory that its transfer points to. */
struct ofpi_resolved {
    struct ofp_transfer transfer;
    struct iovec iov[OFP_SEGMENT_LIMIT];
    struct ofp_region *regions[OFP_SEGMENT_LIMIT];
    struct ofp_remote_segment remote[OFP_SEGMENT_LIMIT];
};
/* A part of a region, or of the process's memory: 0, -OFP_ENOREGION, -EACCES, -ERANGE, -EFAULT. */
int ofpi_segment_resolve(struct ofpi_domain *domain, uint32_t access, uint32_t region_id, uint64_t offset,
                         uint64_t length, struct iovec *iov, struct ofp_region **region);
/* Check a record whole and resolve its segments: 0, -EINVAL, -EOPNOTSUPP, -EMSGSIZE, -ENOKEY-like errors of a bad region. */
int ofpi_operation_resolve(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                           struct ofpi_resolved *resolved);
/* Of an operation that has been checked: its code has a row. */
static inline const struct ofp_operation_row *ofpi_operation_row(const struct ofp_operation *op)
{
    return &ofp_operation_rows[op->op];
}
static inline bool ofpi_operation_is(const struct ofp_operation *op, uint32_t traits)
{
    return ofpi_operation_row(op)->traits & traits;
}
static inline bool ofpi_operation_is_remote(const struct ofp_operation *op)
{
    return ofpi_operation_is(op, OFP_REMOTE);
}
static inline bool ofpi_operation_is_atomic(const struct ofp_operation *op)
{
    return ofpi_operation_is(op, OFP_ATOMIC_KIND);
}
static inline bool ofpi_operation_is_receive(const struct ofp_operation *op)
{
    return ofpi_operation_is(op, OFP_RECEIVES);
}
/* The first check of what a caller asks for: there is such an operation, and it may have these flags. */
static inline bool ofpi_operation_is_known(const struct ofp_operation *op)
{
    return op->op < OFP_OPERATION_COUNT && !(op->flags & ~(uint64_t)ofpi_operation_row(op)->flags);
}
/* What may be the default of an endpoint's operations. */
#define OFPI_LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)
#define OFPI_TX_DEFAULTS (OFP_INJECT | OFP_COMPLETION | OFPI_LEVELS)
#define OFPI_RX_DEFAULTS (OFP_COMPLETION | OFP_MULTI_RECV)
/* The flags of a send-like operation with the defaults that it may have; its own completion level wins. */
static inline uint64_t ofpi_send_flags(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    uint64_t flags = op->flags, defaults = endpoint->tx_flags & ofpi_operation_row(op)->flags;

    return flags | (flags & OFPI_LEVELS ? defaults & ~(uint64_t)OFPI_LEVELS : defaults);
}
/* A posted receive's flags with defaults: only a plain receive becomes a multi-receive. */
static inline uint64_t ofpi_receive_flags(uint64_t flags, uint64_t defaults)
{
    bool plain = !(flags & (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD));

    return flags | (plain ? defaults : defaults & ~(uint64_t)OFP_MULTI_RECV);
}
void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint);
/* Start a receive of a resolved transfer. */
int ofpi_receive_start(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer);
void ofpi_endpoint_flush_later(struct ofp_endpoint *endpoint);
/* Check and start one operation. The lock is held. -EAGAIN: the transmit queue is full. */
int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* The same past the hooks. */
int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* Whether a send-like operation would be told to try again. */
static inline bool ofpi_endpoint_is_full(const struct ofpi_endpoint *endpoint)
{
    return __builtin_expect(endpoint->in_flight >= endpoint->tx_size, 0) &&
           !(endpoint->posts_beyond && endpoint->in_flight < 2 * endpoint->tx_size);
}

/* --------------------------------------------------------------------------------------------------------- peer.c */

/* Of a peer's private part the transport's, which the hooks' follows. */
static inline size_t ofpi_peer_private_size(const struct ofp_endpoint *endpoint)
{
    return (endpoint->ops->peer_size + 15) & ~(size_t)15;
}
/* The peer object of an address vector index, NULL when there is none. */
static inline struct ofpi_peer *ofpi_peer_at(const struct ofpi_endpoint *endpoint, uint32_t index)
{
    uint32_t place = ofpi_id_index(index);
    struct ofpi_peer *peer = place < endpoint->peer_capacity ? endpoint->peers[place] : NULL;

    return peer && peer->base.index == index ? peer : NULL;
}
/* The peer behind an address vector index, made when first used. NULL with *error. */
struct ofpi_peer *ofpi_peer_get(struct ofpi_endpoint *endpoint, uint32_t index, int *error);
/* The one peer of an endpoint of type MSG, state UNUSED; endpoint->peers owns it. NULL: out of memory. */
struct ofpi_peer *ofpi_peer_only(struct ofpi_endpoint *endpoint, const void *address, size_t length);
/* The peers behind all entries of its vector, for a transport with `eager_peers`. */
int ofpi_peers_make(struct ofpi_endpoint *endpoint);
/* Start an operation, connecting and keeping it as needed. */
int ofpi_peer_post(struct ofpi_peer *peer, const struct ofp_transfer *transfer);
/* Post what the backlogs hold; returns how many operations moved. */
int ofpi_peers_flush(struct ofpi_endpoint *endpoint);
/* Lose every peer: what is pending ends as cancelled. The objects stay until ofpi_peers_free. */
void ofpi_peers_close(struct ofpi_endpoint *endpoint);
void ofpi_peers_free(struct ofpi_endpoint *endpoint);
/* A receive that names the peer was posted: if it waits, and the peer is gone, it ends. */
void ofpi_peer_named(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer);
/* The same in a shared receive context, for the peers of the endpoints that share it. */
void ofpi_peer_named_in_shared(struct ofpi_endpoint *context, uint32_t index);
/* The address was inserted again: somebody is expected there. */
void ofpi_peer_expected(struct ofpi_endpoint *endpoint, uint32_t index);
/* The entry leaves the address vector: its operations end as cancelled. */
void ofpi_peer_removed(struct ofpi_endpoint *endpoint, uint32_t index);
/* Have the transport let go of these receives, and end those that it does with `error`. */
void ofpi_receives_take_back(struct ofpi_endpoint *endpoint, struct ofp_list *list, int error);
/* Cancel a backlogged or pending send by context: only what the transport has not begun. */
int ofpi_peer_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags);

struct ofp_peer *ofpi_peer_by_address(struct ofp_endpoint *endpoint, const void *address, size_t length);
void ofpi_peer_connecting(struct ofp_peer *peer);
void ofpi_peer_up(struct ofp_peer *peer);
void ofpi_peer_lost(struct ofp_peer *peer, int error, bool process_gone, const char *text);
/* An operation of a fenced peer has ended: see whether the backlog may go on. */
void ofpi_peer_look_at_fence(struct ofpi_peer *peer);

/* ------------------------------------------------------------------------------------------------------- remote.c */

int ofpi_remote_access(struct ofp_endpoint *endpoint, uint64_t key, uint64_t offset, uint64_t length, uint32_t access,
                       struct ofp_remote_access *result);
void ofpi_remote_release(struct ofp_remote_access *access);
/* The region is about to close: whoever is inside finds no memory any more. */
void ofpi_remote_revoke(struct ofpi_region *region);
void ofpi_remote_event(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region, uint64_t flags,
                       uint64_t data, uint64_t length);
/* -ECANCELED: the region was revoked meanwhile; -EOPNOTSUPP, -EINVAL: the peer asks for what there is not. */
int ofpi_remote_atomic(const struct ofp_remote_access *access, uint32_t operation_code, uint32_t atomic_op,
                       uint32_t datatype, const void *operand, const void *compare, void *result);

/* ------------------------------------------------------------------------------------------------------ pending.c */

struct ofp_pending *ofpi_transfer_retain(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                                         const struct ofp_transfer *transfer);
struct ofp_pending *ofpi_pending_find(struct ofp_peer *peer, uint64_t id);
/* Keep an operation until its peer is up and the transport has room. */
int ofpi_backlog_append(struct ofpi_peer *peer, const struct ofp_transfer *transfer);
void ofpi_transfer_complete(struct ofp_pending *pending, int error, int provider_error);
/* Without a word to anybody. */
void ofpi_pending_free(struct ofpi_pending *pending);
void ofpi_offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                     const struct ofp_offloaded *offloaded);
/* An operation that was not started has ended. */
void ofpi_transfer_end(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                       int provider_error);
/* Report a send-like operation that finished; `op_flags` as in ofpi_endpoint_complete. */
void ofpi_transfer_report(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                          int provider_error);

/* ------------------------------------------------------------------------------------- progress.c, wait.c, helper.c */

/* One round over all endpoints; the kernel is asked now and then, or at once with `kernel`. Returns events handled. */
int ofpi_progress(struct ofpi_domain *domain, bool kernel);
/* Have a timer of the domain run, whoever sleeps. -ENOMEM. */
int ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer);
/* Arm every endpoint and the next deadline. False: there is work, nothing is armed. */
bool ofpi_arm(struct ofpi_domain *domain);
void ofpi_disarm(struct ofpi_domain *domain);

int ofpi_wait_open(struct ofpi_domain *domain);
void ofpi_wait_close(struct ofpi_domain *domain);
typedef bool ofpi_condition(const void *argument);
/*
 * Wait with the lock held (it is released while asleep) until the condition holds, the time-out (ns, negative: none) or
 * one second passes, or a signal comes: 1, 0 or -EINTR. *expired: it was the caller's time-out.
 */
int ofpi_wait(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, int64_t timeout,
              bool *expired);
/* Let go of the lock until *threads of those who wait have left; what they wait for has been made to hold. */
void ofpi_wait_for_leavers(struct ofpi_domain *domain, const uint32_t *threads);
/* Something that a sleeping thread may wait for has happened. Cheap when nobody sleeps. */
void ofpi_wake(struct ofpi_domain *domain);

/* ------------------------------------------------------------------------------------------------------ sleeper.c */

void ofpi_sleeper_init(struct ofpi_sleeper *sleeper);
void ofpi_sleeper_close(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* Wake the user of the descriptor, who has armed it. */
void ofpi_sleeper_rouse(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* The user is awake: the descriptor need not stay readable. */
void ofpi_sleeper_awake(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
int ofpi_sleeper_fileno(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* After fileno. 1: safe to sleep; 0: there is news, or something neither sleeps nor works. */
int ofpi_sleeper_arm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *news,
                     const void *argument);

int ofpi_helper_start(struct ofpi_domain *domain, char *text, size_t text_size);
void ofpi_helper_stop(struct ofpi_domain *domain);
/* The application becomes active: the helper must not sleep armed or parked. The lock is held. */
void ofpi_helper_kick(struct ofpi_domain *domain);

/* --------------------------------------------------------------------------------------------- completion_queue.c */

void ofpi_cq_push(struct ofp_cq *cq, const struct ofp_completion *completion);
/* Wake the user of the descriptor, if the queue is armed. */
void ofpi_cq_notify(struct ofp_cq *cq);

/* ------------------------------------------------------------------------------------- request_slots.c, request.c */

/* A running request; NULL: out of memory. Given back when it is both finished and released. */
struct ofp_request *ofpi_request_take(struct ofpi_endpoint *endpoint);
/* The use ends: its handle is stale. */
void ofpi_request_give(struct ofp_request *request);
/* The slot of a handle whose use has not ended, NULL otherwise. Without the lock it may end at any time. */
struct ofp_request *ofpi_request_find(ofp_request_t handle);
/* The same, with its domain's lock: 0, -ESTALE, or as ofpi_domain_enter. */
int ofpi_request_enter(ofp_request_t handle, struct ofp_request **request);
/* Every handle of the domain is stale; other domains use the slots. */
void ofpi_requests_free(struct ofpi_domain *domain);

/* Start, and with a full transmit queue make room first; `how` and `timeout` as ofp_request_start. */
int ofpi_request_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, uint32_t how, int64_t timeout);
void ofpi_request_finish(struct ofp_request *request, const struct ofp_completion *completion);
static inline bool ofpi_request_is_finished(const struct ofp_request *request)
{
    return ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED;
}
/* It has finished, and nobody wants its completion; request_end.c. */
void ofpi_request_end_released(struct ofp_request *request);
/* Wait until this run of it is over; as ofpi_wait. */
int ofpi_request_await(struct ofp_request *request, int64_t timeout);

/* ------------------------------------------------------------------------------------------------- request_many.c */

void ofpi_request_many_start(struct ofp_request *request);
/* Its last completion has come, so that the operation is no more. */
bool ofpi_request_many_over(const struct ofp_request *request);
/* A completion has come. True: it is the first to be taken, and somebody may want to hear of it. */
bool ofpi_request_many_finish(struct ofp_request *request, const struct ofp_completion *completion);
/* The first completion was taken: the next one is there, or it runs, or it was given back. */
void ofpi_request_many_taken(struct ofp_request *request);
/* Nobody will take the rest. */
void ofpi_request_many_release(struct ofp_request *request);
void ofpi_request_many_forget(struct ofp_request *request);

/* ----------------------------------------------------------------------------------------------------- services.c */

extern const struct ofp_services ofpi_services;

/* ------------------------------------------------------------------------------------------- provider_registry.c */

extern const struct ofp_core ofpi_core;
/* Check a table and enter it; what ofp_provider_load does after loading the object, and C programs that link one. */
/* Of a peer of this domain, from outside: well-formed, and not out of reach. */
int ofpi_address_check(const struct ofp_domain *domain, const void *address, size_t length);
int ofpi_provider_register(ofp_provider_entry_fn *entry, struct ofp_provider **provider, char *text, size_t text_size);

#endif
