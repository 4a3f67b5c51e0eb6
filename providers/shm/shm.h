/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects. The domain's lock guards all of them; the core holds that lock during every call into the provider.
 * Other processes write only to the mapped segment (memory/layout.h).
 *
 *     domain ── processes    one per foreign domain with a link: its identity and eventfd
 *        │  └── arenas       memory of domain.empty
 *     endpoint ── links      one per foreign endpoint that has our segment, by its number here
 *              ├─ meetings   exchanges in progress over sockets
 *              ├─ pulls      payload that the receiver moves
 *              ├─ pushing    links with payload that leaves in fragments
 *              └─ remotes    links with an RMA or atomic operation that has not left completely
 */
#ifndef SHM_H
#define SHM_H

#include <stdio.h>

#include "base/address.h"
#include "base/core.h"
#include "meet/manager.h"
#include "memory/ring.h"
#include "memory/segment.h"
#include "ofipy/bounds.h"
#include "ofipy/check.h"

#define SHM_NAME "shm"
/* A copy under the domain's lock is split into pieces of this size. Each call of progress copies one piece. */
#define SHM_PIECE (UINT64_C(4) << 20)
/* A piece of at least this size takes as long to copy as a sleeping sender needs to wake up. */
#define SHM_WAKE_AHEAD (UINT64_C(512) << 10)
/* Bytes that the receiver fetches at most before it wakes a sleeping sender: two to three milliseconds of copying. */
#define SHM_WAKE_BYTES (UINT64_C(32) << 20)
/* Slots that one call of progress handles at most. */
#define SHM_DRAIN OFP_ROUND_BOUND(64)
/* Time after which a sender checks a full ring again, ns: no event reports the space. */
#define SHM_RETRY_PAUSE UINT64_C(200000)
/*
 * Time after which a claimed slot counts as damage, ns: claimed by an unknown owner; claimed by a peer that does
 * not prove that the claim is not its own.
 */
#define SHM_SUSPICION UINT64_C(200000000)
#define SHM_CLAIM_PATIENCE UINT64_C(5000000000)
/* Time between two checks of the own segment while the endpoint is asleep, ns. */
#define SHM_LOOK_PAUSE UINT64_C(1000000000)
/* Empty polls between two checks of the own segment; a power of two. */
#define SHM_REPAIR_POLLS 4096u
/* Calls of peers that may be in progress at once at an endpoint. */
#define SHM_CALLS_MAX 64

#define SHM_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SHM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct shm_meeting;
struct shm_costs;
struct shm_stores;
struct shm_received;
struct shm_endpoint;
struct shm_link;

/*
 * The process of a foreign domain; a process with several domains has one object for each. Counted by its links;
 * process.c.
 */
struct shm_process {
    struct ofp_list node; /* in shm_domain.processes */
    uint32_t uses;
    uint64_t token; /* the domain's, random */
    int32_t pid;    /* as seen from here; 0: not visible */
    int event_fd;   /* a write to it wakes the process */
    bool dead;
    uint64_t verified_at;   /* when the pid was last verified to belong to this process */
    struct ofp_watch watch; /* the pidfd, or a connection that stays open instead; fd -1: neither */
    struct ofp_list arenas; /* struct shm_foreign_arena: the requested or mapped ones */
    struct shm_domain *domain;
};

struct shm_domain {
    struct ofp_domain *base;
    uint64_t token;
    uint64_t host;           /* core->host_id when the domain was opened; stored in the info too */
    uint64_t start_time;     /* of this process */
    struct shm_process self; /* this process; never dead; owns our eventfd */
    struct ofp_watch wake;   /* our eventfd */
    struct ofp_list processes;
    struct ofp_list endpoints;
    struct ofp_list arenas;
    struct shm_table *table; /* table.c; NULL until the first region is published */
    uint32_t slot_shift, bounce_size, bounce_count;
    uint64_t connect_ns; /* until a peer must have answered */
    bool attach, pidfd;
    bool always_attach; /* do not use the pipeline where attach works */
};

/* Why a link ends. */
enum shm_end {
    SHM_END_CLOSED, /* the peer's endpoint is closed */
    SHM_END_DEAD,   /* the peer's process is dead */
    SHM_END_RENEWED /* the peer has replaced its segment; a new meeting follows */
};

/* A copy of an entry of a region table, and the address of the entry. */
struct shm_target {
    const struct shm_region_entry *entry;
    uint64_t serial, address, length, arena_offset;
    uint32_t arena, access, id;
};

/* A mapped region of the peer, to which the last operation went; direct.c. */
struct shm_last_region {
    char *memory; /* the region's first byte in this process; NULL: none */
    uint64_t key;
    struct shm_target target;
};

/* Facts by which a receiver decides whether to wait for fragments of a sender; presence.c. */
struct shm_presence {
    uint32_t expected;                  /* messages that wait for fragments; while 0, only `fragments` is valid */
    uint32_t looks;                     /* the sender's count of polls of its ring, at the last check */
    uint32_t fragments, fragments_seen; /* fragments that have arrived; the same at the last check */
    uint64_t brought_at, seen_at; /* the last check that found new fragments; the last that found the sender active */
};

/*
 * One remote endpoint. A post reads the first cache line only. Invariants: `ready` implies `up`; `up` implies a
 * `process` and state UP or DOUBTED; `remote_operation` is set exactly while `remotes` is in endpoint->remotes.
 */
struct shm_link {
    struct shm_ring ring;    /* the peer's ring */
    uint32_t number_there;   /* the owner number of our slots in it */
    bool ready;              /* up, and all operations posted before have left */
    bool up;                 /* state is UP or DOUBTED, and the peer does not close */
    struct ofpi_meeting met; /* for the manager of native/meet, while there is a peer */
    bool attach;             /* process_vm_readv from the peer works */
    bool overtaken; /* payload that was requested as fragments was fetched by attach: some fragments may still arrive */
    bool goodbye_sent, goodbye_received;
    uint32_t stamp_out; /* stamp series of our slots in the peer's ring */
    struct shm_endpoint *endpoint;
    struct ofp_peer *peer; /* NULL once the core has released it; the other side may write until its GOODBYE or death */
    uint32_t stamp_in;     /* stamp series of the peer's slots in our ring */

    uint32_t number;             /* our number for the peer: index in endpoint->links */
    uint32_t bounce_used;        /* our bounce buffers with whole messages that the peer has not returned */
    uint32_t fragments_used;     /* our bounce buffers with fragments that the peer has not returned */
    struct shm_segment segment;  /* the peer's segment */
    struct shm_process *process; /* NULL: state CONNECTING, nothing of the peer is mapped */
    uint64_t probe_address;      /* address of the incarnation in the peer's process; proves its identity */
    uint64_t drain_until;     /* draining, or DOUBTED after another call: the ring position behind all earlier slots */
    uint64_t probe;           /* id of the PROBE that the peer has not answered; 0: none */
    bool draining;            /* over: the slots up to drain_until are read */
    uint8_t end;              /* enum shm_end */
    bool closing;             /* the peer has set SHM_CLOSING */
    struct ofp_list busy;     /* in endpoint->busy while draining or with queued controls */
    struct ofp_list wake;     /* in endpoint->to_wake until the peer is woken */
    struct ofp_list controls; /* struct shm_control: they wait for space in the peer's ring */
    struct shm_presence presence;
    struct ofp_pending *remote_operation; /* the RMA or atomic operation that has not left completely; NULL: none */
    struct ofp_list remotes;              /* in endpoint->reaching while there is one */
    struct ofp_list pushes;  /* struct shm_push: payload that we send in fragments, one message after the other */
    struct ofp_list pushing; /* in endpoint->pushing while there are any */
    uint32_t unanswered;     /* remote operations that the peer still has to answer */
    uint32_t direct_count;   /* remote operations in a row that went to the peer but could have been direct; direct.c */
    struct shm_last_region last_region; /* direct.c; `memory` is NULL while `process` is */
    struct shm_costs *costs;            /* cost.c: measured costs; NULL: no large message yet. Owned */
    struct shm_stores *stores;          /* store.c: the same of remote writes. Owned */
};

_Static_assert(offsetof(struct shm_link, stamp_in) + sizeof(uint32_t) <= SHM_CACHE_LINE,
               "a message reads one line of it");
/* Includes the process and the entry in the table of numbers. The core's own part of a peer fits into the rest. */
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
 * Calls from lower layers to upper layers. endpoint.c fills the table, since endpoint.c may use every layer. No entry
 * is called once per message.
 */
struct shm_upper {
    /* hello.c, lifecycle.c: what the manager of native/meet needs. */
    const struct ofpi_meeting_ops *meeting;
    /*
     * meet.c: the connection of a caller or requester is established; a packet arrived; the peer disconnected; the
     * deadline passed.
     */
    int (*meeting_connected)(struct shm_meeting *meeting);
    void (*meeting_received)(struct shm_meeting *meeting, struct shm_received *received);
    void (*meeting_disconnected)(struct shm_meeting *meeting);
    void (*meeting_failed)(struct shm_meeting *meeting, int error, const char *text);
    /* arena.c: request an arena of a link's peer; shm_foreign_arena_arrived delivers the answer. */
    int (*request_arena)(struct shm_link *link, uint32_t number);
    /* lifecycle.c: free the transfers of this link. */
    void (*free_transfers)(struct shm_link *link);
    /* repair.c: the ring will be replaced; handle its complete slots first. */
    void (*drain_ring)(struct shm_endpoint *endpoint);
};

struct shm_endpoint {
    /* Read by every call of progress. */
    struct shm_ring ring; /* ours */
    uint64_t head;
    struct shm_link **links; /* by number; entry 0 is never used */
    uint32_t link_capacity;
    uint32_t work; /* enum shm_work bits: what progress has to do besides the ring */
    uint32_t empty_polls;
    uint32_t looks; /* polls of the ring, as counted in our header */

    struct ofp_endpoint *base;
    struct shm_domain *domain;
    const struct shm_upper *upper;
    bool armed, stalled, closed;
    bool complained_owner, complained_kind;
    uint64_t protocol_errors;
    /*
     * repair.c: head + 1 at which a claimed slot is watched, 0: none; its state; since when; the slot by which its
     * owner is probed.
     */
    uint64_t suspect, suspect_state, suspect_since;
    const struct shm_slot *suspect_probe; /* NULL: no probe yet */
    uint64_t suspect_probe_state;
    uint64_t slots_checked; /* when all slots were checked */
    uint64_t replace_again; /* time of the next attempt after a failure */
    struct shm_segment segment;
    int segment_fd;
    uint64_t incarnation; /* random; a peer reads it by attach to prove that attach works */
    struct shm_address address;
    struct shm_bounce_pool bounce;
    uint64_t *retired_at; /* by number: the head from which on the number may be allocated again */
    uint32_t number_cursor;
    struct ofp_list node; /* in shm_domain.endpoints */
    struct ofp_list busy; /* links, by shm_link.busy */
    struct ofp_list meetings;
    uint32_t calls;                 /* meetings that peers began */
    struct ofp_list pulls, awaited; /* payload that we move; payload that only the sender can move */
    uint32_t pipelined;             /* messages of both lists that wait for fragments */
    struct ofp_list pushing;        /* links, by shm_link.pushing, served in turn */
    struct ofp_list remotes;        /* links, by shm_link.reaching */
    struct ofp_list to_wake;        /* links, by shm_link.wake: sleeping peers that have to be woken */
    bool in_progress;
    uint64_t moved;       /* bytes that this call of progress has fetched */
    uint64_t moved_since; /* bytes fetched since sleeping peers were last woken */
    struct ofp_watch listener;
    struct ofp_timer listener_timer; /* after a shortage of descriptors or too many calls: accept again */
    struct ofp_timer retry_timer;
    struct ofp_timer check_timer; /* checks the own segment while the endpoint is asleep */
};

enum shm_work {
    SHM_WORK_LINKS = 1,
    SHM_WORK_PULLS = 2,
    SHM_WORK_PUSHES = 4,
    SHM_WORK_ANNOUNCE = 8,
    SHM_WORK_REMOTE = 16,
    SHM_WORK_PROBE = 32 /* a slot of an unknown sender was read: a slot of a peer may have been overwritten */
};

static inline struct shm_domain *shm_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct shm_endpoint *shm_endpoint_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }
static inline struct shm_link *shm_link_of(const struct ofp_peer *peer)
{
    return ((const struct shm_peer *)peer->private)->link;
}

#endif
