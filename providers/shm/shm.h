/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects. Everything here is guarded by the domain's lock, which the core holds around every call into the
 * provider.
 *
 *     domain ── processes    one per foreign domain that we have met: whose it is, its eventfd
 *        │  └── arenas       memory of domain.empty
 *     endpoint ── links      one per foreign endpoint that has our segment, by the number it was given
 *              ├─ meetings   sockets on which an exchange is under way
 *              ├─ pulls      payload that we fetch
 *              ├─ pushing    links with payload that we send in fragments
 *              └─ reaching   links with an RMA or atomic operation that has not left whole
 */
#ifndef SHM_H
#define SHM_H

#include <stdio.h>

#include "base/address.h"
#include "base/core.h"
#include "meet/meet.h"
#include "memory/ring.h"
#include "memory/segment.h"

#define SHM_NAME "shm"
/* A copy under the domain's lock is made in pieces of this size, one per call of progress. */
#define SHM_PIECE (UINT64_C(4) << 20)
/* A piece that takes long enough to copy for a sleeping sender to wake up meanwhile. */
#define SHM_WAKE_AHEAD (UINT64_C(512) << 10)
/* And bytes fetched before a sleeping sender learns of them at the latest: two to three milliseconds. */
#define SHM_WAKE_BYTES (UINT64_C(32) << 20)
/* Slots that one call of progress handles at most. */
#define SHM_DRAIN 64
/* Without an event to wait for (a full ring of somebody else): look again after this long, ns. */
#define SHM_RETRY_PAUSE UINT64_C(200000)
/* So long may a slot be claimed by nobody known, and by a peer that does not say that it does not hold it, ns. */
#define SHM_SUSPICION UINT64_C(200000000)
#define SHM_CLAIM_PATIENCE UINT64_C(5000000000)
/* Between two looks at the own segment while asleep, ns. */
#define SHM_LOOK_PAUSE UINT64_C(1000000000)
/* Empty polls between two looks at whether the own segment is in order; a power of two. */
#define SHM_REPAIR_POLLS 4096u
/* Calls of others under way at once, at an endpoint. */
#define SHM_CALLS_MAX 64

#define SHM_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SHM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct shm_meeting;
struct shm_costs;
struct shm_received;
struct shm_endpoint;
struct shm_link;

/* The process of a foreign domain; one that has several of them is here once for each. Counted by its links; process.c. */
struct shm_process {
    struct ofp_list node; /* in shm_domain.processes */
    uint32_t uses;
    uint64_t token; /* the domain's, random */
    int32_t pid;    /* as seen from here; 0: not visible */
    int event_fd;   /* wakes it */
    bool dead;
    uint64_t verified_at;   /* when its pid was last known to be its own */
    struct ofp_watch watch; /* its pidfd, or the connection kept in its place; fd -1: neither */
    struct ofp_list arenas; /* struct shm_foreign_arena: those of its memory that we know */
    struct shm_domain *domain;
};

struct shm_domain {
    struct ofp_domain *base;
    uint64_t token;
    uint64_t host;           /* core->host_id when it was opened; what its info says too */
    uint64_t start_time;     /* of this process */
    struct shm_process self; /* never dead; holds our eventfd */
    struct ofp_watch wake;   /* our eventfd */
    struct ofp_list processes;
    struct ofp_list endpoints;
    struct ofp_list arenas;
    struct shm_table *table; /* table.c; NULL until the first region is published */
    uint32_t slot_shift, bounce_size, bounce_count;
    uint64_t connect_ns; /* until a peer must have answered */
    bool attach, pidfd;
    bool always_attach; /* never the pipeline, where attach works */
};

/* Why a link is dying. */
enum shm_end {
    SHM_END_DEAD,   /* the process is */
    SHM_END_CLOSED, /* the endpoint is, for good */
    SHM_END_RENEWED /* it lives on and is met anew */
};

/* A copy of an entry of a region table, and where it stands. */
struct shm_target {
    const struct shm_region_entry *entry;
    uint64_t serial, address, length, arena_offset;
    uint32_t arena, access, id;
};

/* A region of the other side that we have mapped. */
struct shm_last_region {
    char *memory; /* its first byte here; NULL: none */
    uint64_t key;
    struct shm_target target;
};

/* What a receiver knows of the sender of fragments; presence.c. */
struct shm_presence {
    uint32_t expected; /* messages that wait for fragments; while 0 the rest but `fragments` means nothing */
    uint32_t looks;    /* of the sender at its ring, as its header said at the last check */
    uint32_t fragments, fragments_seen; /* that have arrived; by the last check */
    uint64_t brought_at, seen_at; /* when fragments arrived before a check; when the sender was last seen at work */
};

/* One remote endpoint. The first cache line is what a post reads. */
struct shm_link {
    struct shm_ring ring;  /* theirs */
    uint32_t number_there; /* what our slots in it are signed with */
    bool ready;            /* up, and nothing that was posted before has yet to leave */
    bool up;               /* state is UP or DOUBTED, and the other side does not close */
    uint8_t state;  /* enum ofpi_meet_state; IDLE: dropped here, still alive there, until their GOODBYE or death */
    bool attach;    /* process_vm_readv from it works */
    bool overtaken; /* payload that it sends as fragments was fetched meanwhile: some may still come */
    bool goodbye_sent, goodbye_received;
    uint32_t stamp_out; /* series of the slots in theirs */
    struct shm_endpoint *endpoint;
    struct ofp_peer *peer; /* NULL once the core has let go of it */
    uint32_t stamp_in;     /* series of its slots in ours */

    uint32_t number;             /* ours for it: index in endpoint->links */
    uint32_t bounce_used;        /* our buffers with whole messages that it has not given back */
    uint32_t fragments_used;     /* and those with fragments */
    struct shm_segment segment;  /* theirs */
    struct shm_process *process; /* NULL: CONNECTING or BACKOFF, nothing of theirs is here */
    uint64_t probe_address;      /* there lies its incarnation: proves that the process is still the same */
    uint64_t drain_until;        /* DRAINING, or DOUBTED since it called again: what it sent before lies before */
    uint64_t probe;              /* id of the PROBE that it has not answered; 0: none */
    uint8_t end;                 /* DRAINING: enum shm_end */
    bool closing;                /* seen SHM_CLOSING */
    struct ofp_list busy;        /* in endpoint->busy while dying or with controls queued */
    struct ofp_list wake;        /* in endpoint->to_wake while its owner waits to be woken */
    struct ofp_list controls;    /* struct shm_control: waits for room in their ring */
    struct shm_presence presence;
    struct ofp_pending *remote_operation; /* the one RMA or atomic operation that has not left whole; NULL: none */
    struct ofp_list remotes;              /* in endpoint->reaching while there is one */
    struct ofp_list pushes;  /* struct shm_push: payload that we send it in fragments, one message after the other */
    struct ofp_list pushing; /* in endpoint->pushing while there are any */
    uint32_t unanswered;     /* operations that went by their ring, or have begun to */
    uint32_t direct_count;   /* of the last ones, those in a row that could have been direct; direct.c */
    struct shm_last_region last_region; /* direct.c: the last one; `memory` NULL with `process` */
    struct shm_costs *costs;            /* cost.c: of moving its messages; NULL: none was large. Owned */
};

_Static_assert(offsetof(struct shm_link, stamp_in) + sizeof(uint32_t) <= SHM_CACHE_LINE,
               "a message reads one line of it");
/* With a process and a place in the table of numbers, and room for the core's own part of a peer. */
_Static_assert(sizeof(struct shm_link) + sizeof(struct shm_process) <= 640, "under 1 KiB for an idle peer");

struct shm_peer {
    struct shm_link *link; /* NULL: none */
};

/* Our own bounce buffers; bounce.c. */
struct shm_bounce_pool {
    struct shm_bounce_buffer *buffers;
    uint64_t *free_bits;
    uint32_t free_count;
    bool reserved, refused;
};

/*
 * What lower storeys have to tell upper ones, or want of them. Filled by endpoint.c, which knows all of them; nothing of it is
 * called for each message.
 */
struct shm_upper {
    /* meet.c: the connection of a caller or asker stands; a packet arrived; the other side hung up; the deadline passed. */
    int (*meeting_connected)(struct shm_meeting *meeting);
    void (*meeting_received)(struct shm_meeting *meeting, struct shm_received *received);
    void (*meeting_disconnected)(struct shm_meeting *meeting);
    void (*meeting_failed)(struct shm_meeting *meeting, int error, const char *text);
    /* arena.c: ask the owner of a link for memory of its domain; shm_foreign_arena_arrived brings it. */
    int (*request_arena)(struct shm_link *link, uint32_t number);
    /* lifecycle.c: messages under way over this link go nowhere any more. */
    void (*free_transfers)(struct shm_link *link);
    /* repair.c: the ring is about to be given up. */
    void (*drain_ring)(struct shm_endpoint *endpoint);
};

struct shm_endpoint {
    /* Read by every call of progress. */
    struct shm_ring ring; /* ours */
    uint64_t head;
    struct shm_link **links; /* by number; entry 0 is never used */
    uint32_t link_capacity;
    uint32_t work; /* enum shm_work bits: something besides the ring */
    uint32_t empty_polls;
    uint32_t looks; /* what our header says */

    struct ofp_endpoint *base;
    struct shm_domain *domain;
    const struct shm_upper *upper;
    bool armed, stalled, closed;
    bool complained_owner, complained_kind;
    uint64_t protocol_errors;
    /* repair.c: head + 1 at which a claimed slot is watched, 0: none; its state, since when, and what its owner was asked. */
    uint64_t suspect, suspect_state, suspect_since;
    const struct shm_slot *suspect_probe; /* NULL: not yet */
    uint64_t suspect_probe_state;
    uint64_t slots_checked; /* when all slots were looked at */
    uint64_t replace_again; /* when, after a failure */
    struct shm_segment segment;
    int segment_fd;
    uint64_t incarnation; /* random; also what a peer reads to prove that it may attach */
    struct shm_address address;
    struct shm_bounce_pool bounce;
    uint64_t *retired_at; /* by number: head from which on it may be given again */
    uint32_t number_cursor;
    struct ofp_list node; /* in shm_domain.endpoints */
    struct ofp_list busy; /* links, by shm_link.busy */
    struct ofp_list meetings;
    uint32_t calls;                 /* of them, those that others began */
    struct ofp_list pulls, awaited; /* payload that we work on; that only the sender can bring */
    uint32_t pipelined;             /* of both, messages whose senders are asked for fragments */
    struct ofp_list pushing;        /* links, by shm_link.pushing: each in its turn */
    struct ofp_list remotes;        /* links, by shm_link.reaching */
    struct ofp_list to_wake;        /* links, by shm_link.wake: sleepers that are to know what was sent to them */
    bool in_progress;
    uint64_t moved;       /* bytes that this call of progress has fetched */
    uint64_t moved_since; /* and those since sleepers were last woken */
    struct ofp_watch listener;
    struct ofp_timer listener_timer; /* out of descriptors, or enough calls: listen again */
    struct ofp_timer retry_timer;
    struct ofp_timer check_timer; /* asleep: look at the own segment all the same */
};

enum shm_work {
    SHM_WORK_LINKS = 1,
    SHM_WORK_PULLS = 2,
    SHM_WORK_PUSHES = 4,
    SHM_WORK_ANNOUNCE = 8,
    SHM_WORK_REMOTE = 16,
    SHM_WORK_PROBE = 32 /* a slot of nobody was read: somebody's may be missing */
};

static inline struct shm_domain *shm_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct shm_endpoint *shm_endpoint_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }
static inline struct shm_link *shm_link_of(const struct ofp_peer *peer)
{
    return ((const struct shm_peer *)peer->private)->link;
}

#endif
