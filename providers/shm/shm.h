/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects and what its files do for each other. Everything here is guarded by the domain's lock, which the
 * core holds around every call into the provider.
 *
 *     domain ── remotes      one per foreign domain that we have met: its process, its eventfd
 *        │  └── arenas       memory of domain.empty
 *     endpoint ── links      one per foreign endpoint that has our segment, by the number it was given
 *              ├─ meetings   sockets on which an exchange is under way
 *              ├─ pulls      payload that we fetch
 *              ├─ pushes     payload that we send in fragments
 *              └─ reaching   links with an RMA or atomic operation that has not left whole
 */
#ifndef SHM_H
#define SHM_H

#include <stdio.h>

#include "address.h"
#include "core.h"
#include "ring.h"
#include "segment.h"

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
#define SHM_MEND_POLLS 4096u
/* Calls of others under way at once, at an endpoint. */
#define SHM_CALLS_MAX 64

#define SHM_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SHM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A foreign domain. Counted by its links; death.c. */
struct shm_remote {
    struct ofp_list node; /* in shm_domain.remotes */
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
    uint64_t start_time;    /* of this process */
    struct shm_remote self; /* never dead; holds our eventfd */
    struct ofp_watch wake;  /* our eventfd */
    struct ofp_list remotes;
    struct ofp_list endpoints;
    struct ofp_list arenas;
    struct shm_table *table; /* table.c; NULL until the first region is published */
    uint32_t slot_shift, bounce_size, bounce_count;
    uint64_t connect_ns; /* until a peer must have answered */
    bool attach, pidfd;
};

enum shm_link_state {
    SHM_LINK_ASKING,   /* we sent, or will send, HELLO: no segment of theirs yet */
    SHM_LINK_ANSWERED, /* we sent WELCOME and have their segment; up at their ACK or first slot */
    SHM_LINK_UP,
    SHM_LINK_LEAVING, /* dropped here, still alive there: kept until their GOODBYE or death */
    SHM_LINK_DYING    /* over: lost once the ring is read up to `drain_until` */
};

/* Why a link is dying. */
enum shm_end {
    SHM_END_DEAD,   /* the process is */
    SHM_END_CLOSED, /* the endpoint is, for good */
    SHM_END_RENEWED /* it lives on and is met anew */
};

/* One remote endpoint. The first cache line is what a post reads. */
struct shm_link {
    struct shm_ring ring;  /* theirs */
    uint32_t number_there; /* what our slots in it are signed with */
    bool ready;            /* up, and nothing that was posted before has yet to leave */
    bool up;               /* state is SHM_LINK_UP */
    uint8_t state;         /* enum shm_link_state */
    bool attach;           /* process_vm_readv from it works */
    bool goodbye_sent, goodbye_received;
    bool calls;         /* UP, yet it called again: it has let go of the link */
    uint32_t stamp_out; /* series of the slots in theirs */
    struct shm_endpoint *endpoint;
    struct ofp_peer *peer; /* NULL once the core has let go of it */
    uint32_t stamp_in;     /* series of its slots in ours */

    uint32_t number;            /* ours for it: index in endpoint->links */
    uint32_t bounce_held;       /* our buffers with whole messages that it has not given back */
    uint32_t fragments_held;    /* and those with fragments */
    struct shm_segment segment; /* theirs */
    struct shm_remote *remote;
    uint64_t probe_address;    /* there lies its incarnation: proves that the process is still the same */
    uint64_t drain_until;      /* dying, or `calls`: what it sent before lies before */
    uint64_t probe;            /* id of the PROBE that it has not answered; 0: none */
    uint8_t end;               /* dying: enum shm_end */
    bool closing;              /* seen SHM_CLOSING */
    struct ofp_list busy;      /* in endpoint->busy while dying or with controls queued */
    struct ofp_list wake;      /* in endpoint->to_wake while its owner waits to be woken */
    struct ofp_list controls;  /* struct shm_control: waits for room in their ring */
    struct ofp_list kept;      /* struct shm_kept: its messages that the core knows as announced */
    struct ofp_pending *reach; /* the one RMA or atomic operation that has not left whole; NULL: none */
    struct ofp_list reaching;  /* in endpoint->reaching while there is one */
    uint32_t unanswered;       /* operations that went by their ring, or have begun to */
};

_Static_assert(offsetof(struct shm_link, stamp_in) + sizeof(uint32_t) <= SHM_CACHE_LINE,
               "a message reads one line of it");
/* With a remote and a place in the table of numbers, and room for the core's own part of a peer. */
_Static_assert(sizeof(struct shm_link) + sizeof(struct shm_remote) <= 640, "under 1 KiB for an idle peer");

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

struct shm_endpoint {
    /* Read by every call of progress. */
    struct shm_ring ring; /* ours */
    uint64_t head;
    struct shm_link **links; /* by number; entry 0 is never used */
    uint32_t link_capacity;
    uint32_t work; /* enum shm_work bits: something besides the ring */
    uint32_t empty_polls;

    struct ofp_endpoint *base;
    struct shm_domain *domain;
    bool armed, stalled, closed;
    bool complained_owner, complained_kind;
    uint64_t protocol_errors;
    /* mend.c: head + 1 at which a claimed slot is watched, 0: none; its state, since when, and what its owner was asked. */
    uint64_t suspect, suspect_state, suspect_since;
    const struct shm_slot *suspect_asked; /* NULL: not yet */
    uint64_t suspect_asked_state;
    uint64_t slots_seen;  /* when all slots were looked at */
    uint64_t renew_again; /* when, after a failure */
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
    uint32_t calls; /* of them, those that others began */
    struct ofp_list pulls, pushes;
    struct ofp_list reaching; /* links, by shm_link.reaching */
    struct ofp_list to_wake;  /* links, by shm_link.wake: sleepers that are to know what was sent to them */
    bool in_progress;
    uint64_t moved;       /* bytes that this call of progress has fetched */
    uint64_t moved_since; /* and those since sleepers were last woken */
    struct ofp_watch listener;
    struct ofp_timer listener_timer; /* out of descriptors, or enough calls: listen again */
    struct ofp_timer retry_timer;
    struct ofp_timer look_timer; /* asleep: look at the own segment all the same */
};

enum shm_work {
    SHM_WORK_LINKS = 1,
    SHM_WORK_PULLS = 2,
    SHM_WORK_PUSHES = 4,
    SHM_WORK_ANNOUNCE = 8,
    SHM_WORK_REACHING = 16,
    SHM_WORK_PROBE = 32 /* a slot of nobody was read: somebody's may be missing */
};

static inline struct shm_domain *shm_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct shm_endpoint *shm_endpoint_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }
static inline struct shm_link *shm_link_of(const struct ofp_peer *peer)
{
    return ((const struct shm_peer *)peer->private)->link;
}

/* --------------------------------------------------------------------------------------------------------- endpoint.c */

/* A random number, never 0. */
uint64_t shm_draw(void);
int shm_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
void shm_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int shm_endpoint_name(struct ofp_endpoint *base, void *address, size_t *length);
bool shm_endpoint_arm(struct ofp_endpoint *base);
void shm_endpoint_disarm(struct ofp_endpoint *base);

/* ------------------------------------------------------------------------------------------------------------- link.c */

/* A link without a segment, with a number of its own. NULL: out of memory. */
struct shm_link *shm_link_new(struct shm_endpoint *endpoint, struct ofp_peer *peer);
/* Everything goes, the number is retired, our bounce buffers come back. The core does not know the link any more. */
void shm_link_free(struct shm_link *link);
/* The link of a number that came from outside; NULL: none. */
static inline struct shm_link *shm_link_find(const struct shm_endpoint *endpoint, uint32_t number)
{
    return number < endpoint->link_capacity ? endpoint->links[number] : NULL;
}
/* Both sides have each other: tell the core. */
void shm_link_up(struct shm_link *link);
/* The other side is dead, closed or made anew: read what the ring holds from it, then lose it. */
void shm_link_dying(struct shm_link *link, enum shm_end end);
/* The other side has begun to close: nothing more is posted, its farewell or SHM_CLOSED ends the link. */
void shm_link_closing(struct shm_link *link);
/* The way to the peer is lost for this reason; the link is gone, or leaving, afterwards. */
void shm_link_lose(struct shm_link *link, int error, bool process_gone, const char *text);
/* It broke the protocol. */
void shm_link_violation(struct shm_link *link, const char *what);
/* Dying links that are drained, controls that wait. Returns events handled. */
int shm_links_work(struct shm_endpoint *endpoint);
/* The initiator went away without an ACK: ask it ourselves, for there may be operations waiting. */
void shm_link_unanswered(struct shm_link *link);
/* Its GOODBYE arrived; the link may be gone afterwards. */
void shm_link_goodbye(struct shm_link *link, bool ended);
/* Our segment is given up: part with everybody who has it; and with the fresh one go on with what was not over. */
void shm_links_part(struct shm_endpoint *endpoint);
void shm_links_call_again(struct shm_endpoint *endpoint);
/* As the core's entries. */
int shm_link_connect(struct ofp_peer *peer, char *text, size_t text_size);
void shm_link_peer_down(struct ofp_peer *peer);

/* ------------------------------------------------------------------------------------------------------------- mend.c */

/* Whether the slot at the head is in a state that it may be in; false: look again soon. */
bool shm_head_mend(struct shm_endpoint *endpoint);
/* The same of the whole of our segment, as far as it is not payload. */
void shm_segment_mend(struct shm_endpoint *endpoint);
/* A link is freed, which may be the one that a claimed slot names. */
static inline void shm_suspicion_end(struct shm_endpoint *endpoint) { endpoint->suspect = 0; }
/* Ask every peer whether all that it sends arrives. */
void shm_probe_all(struct shm_endpoint *endpoint);
/* It answered out of its turn: some of its slots were lost. The link is dropped, and its peer met anew. */
void shm_probe_failed(struct shm_link *link);
/* Give the segment up for a fresh one. */
void shm_segment_renew(struct shm_endpoint *endpoint, const char *why);
/* What has its status set in our header, by us. */
uint64_t shm_own_status(const struct shm_endpoint *endpoint);

/* ------------------------------------------------------------------------------------------------------------- send.c */

int shm_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* Copy `length` bytes at `offset` of scattered memory, out of it or into it. */
void shm_gather(void *target, const struct iovec *iov, uint32_t iov_count, uint64_t offset, uint64_t length);
void shm_scatter(const struct iovec *iov, uint32_t iov_count, uint64_t offset, const void *source, uint64_t length);
/* Wake the owner of the ring if it sleeps, note that it closes; `status` as shm_ring_publish returned it. */
void shm_after_publish(struct shm_link *link, uint64_t status);
/* Wake those that shm_after_publish kept for the end of a call of progress. */
void shm_wake_sleepers(struct shm_endpoint *endpoint);
/* It is about to get an answer that it sleeps for, and would take as long to wake up as we to get there. */
void shm_wake_ahead(struct shm_link *link);
void shm_flush(struct ofp_endpoint *base);
static inline void shm_publish(struct shm_link *link, struct shm_slot *slot, uint64_t state)
{
    uint64_t status;

    link->stamp_out = shm_stamp_next(link->stamp_out);
    slot->content.stamp = shm_stamp_of(link->stamp_out);
    status = shm_ring_publish(&link->ring, slot, state);
    if (SHM_UNLIKELY(status))
        shm_after_publish(link, status);
}

/* ---------------------------------------------------------------------------------------------------------- control.c */

struct shm_control {
    struct ofp_list node;
    uint8_t kind, flags;
    struct shm_control_fields fields;
};
/* End the next sleep soon: something waits that nobody wakes us for. */
void shm_schedule_retry(struct shm_endpoint *endpoint);
/* A slot without payload: now, or as soon as their ring has room. */
void shm_control_send(struct shm_link *link, uint8_t kind, uint8_t flags, const struct shm_control_fields *fields);
/* Send what waits. True: nothing waits any more. */
bool shm_controls_flush(struct shm_link *link);
void shm_controls_drop(struct shm_link *link);

/* ----------------------------------------------------------------------------------------------------------- bounce.c */

struct shm_bounce_buffer {
    uint32_t generation;     /* of its last use */
    struct shm_link *holder; /* who has yet to free it; NULL: it is free */
    bool fragment;           /* of a message whose receive is there; otherwise a whole message */
    /* Of a part of a remote operation; request.c. */
    uint64_t pending; /* its id; 0: another use */
    uint64_t offset;
    uint32_t length, payload; /* bytes, and where in the buffer */
    /* Of a fragment: who frees that slot has given back the buffer. Otherwise NULL. */
    const struct shm_slot *slot;
    uint64_t slot_state;
};
int shm_bounce_open(struct shm_endpoint *endpoint);
void shm_bounce_close(struct shm_endpoint *endpoint);
/* A free buffer for this link: its index, or -EAGAIN, or -ENOMEM when the machine cannot back the buffers. */
int shm_bounce_take(struct shm_link *link, bool fragment);
static inline char *shm_bounce_memory(const struct shm_segment *segment, uint32_t index)
{
    return segment->bounce_buffers + (size_t)index * segment->bounce_size;
}
/* Whether shm_bounce_take would find one for a fragment. Looks at the buffers' states in the order that sleeping asks for. */
bool shm_bounce_would_have(struct shm_link *link);
/* Not sent after all. */
void shm_bounce_give(struct shm_endpoint *endpoint, uint32_t index);
/* The holder is gone. */
void shm_bounce_reclaim(struct shm_link *link);
/* Take back what was given back and does not look so, since its state word was overwritten. */
void shm_bounce_mend(struct shm_endpoint *endpoint);
/* All holders are, and the memory with them. */
void shm_bounce_renew(struct shm_endpoint *endpoint);
/* Whether a fields' buffer exists in the sender's segment and can hold that much. */
bool shm_bounce_is_valid(const struct shm_link *link, const struct shm_bounce_fields *fields, uint64_t length);
/* Receiver: the buffer is the sender's again. Wake it if it sleeps: it may wait for that. */
void shm_bounce_free(struct shm_link *link, const struct shm_bounce_fields *fields, bool wake);

/* ---------------------------------------------------------------------------------------------------------- receive.c */

int shm_progress(struct ofp_endpoint *base);
/* Before the ring is given up: handle every slot behind the head that is whole. */
void shm_receive_rest(struct shm_endpoint *endpoint);

/* What ofp_message.provider_data of an announced message holds. */
enum shm_way {
    SHM_WAY_REMOTE, /* at the sender: fetch it */
    SHM_WAY_BOUNCE, /* in the sender's bounce buffer */
    SHM_WAY_KEPT    /* in a struct shm_kept */
};
enum shm_message_data {
    SHM_DATA_WAY, /* enum shm_way | iov_count << 8 | arena << 32 */
    SHM_DATA_ID,  /* REMOTE: the sender's operation; BOUNCE: index << 32 | generation; KEPT: its address */
    SHM_DATA_ADDRESS,
    SHM_DATA_ARENA_OFFSET,
};
/* A copy of a small message that the core would not keep as a whole. */
struct shm_kept {
    struct ofp_list node; /* in link->kept */
    uint32_t length;
    uint8_t payload[SHM_INLINE_SIZE];
};
void shm_kept_drop(struct shm_link *link);

/* ------------------------------------------------------------------------------------------------------------- pull.c */

void shm_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive);
/* Move one piece of every message that is being fetched. Returns events handled. */
int shm_pulls_work(struct shm_endpoint *endpoint);
void shm_pulls_drop(struct shm_link *link);
/* Slots about payload that travels as fragments. False: the peer broke the protocol. */
bool shm_fragment_arrived(struct shm_link *link, const struct shm_content *content);
bool shm_abort_arrived(struct shm_link *link, const struct shm_content *content);

/* ------------------------------------------------------------------------------------------------------------- push.c */

bool shm_done_arrived(struct shm_link *link, const struct shm_content *content);
bool shm_clear_arrived(struct shm_link *link, const struct shm_content *content);
int shm_pushes_work(struct shm_endpoint *endpoint);
/* Whether the next fragment could leave now. */
bool shm_pushes_can_move(struct shm_endpoint *endpoint);
void shm_pushes_drop(struct shm_link *link);

/* ------------------------------------------------------------------------------------------------------------ arena.c */

int shm_arena_allocate(struct ofp_domain *domain, struct ofp_region *region, char *text, size_t text_size);
void shm_arena_free(struct ofp_domain *domain, struct ofp_region *region);
void shm_arenas_close(struct shm_domain *domain);
/* Where in which arena this memory lies; arena 0: in none. */
uint32_t shm_arena_locate(const struct shm_domain *domain, const void *memory, uint64_t length, uint64_t *offset);
/* Descriptor of an arena of ours, or of the region table; -1: none of that number. */
int shm_arena_descriptor(const struct shm_domain *domain, uint32_t number);
/*
 * Memory of a peer's arena, or of its region table, checked against what is mapped. NULL: it is not mapped yet (and asked
 * for), or there is no such place in it.
 */
char *shm_foreign_memory(struct shm_link *link, uint32_t number, uint64_t offset, uint64_t length);
/* Whether the peer has been asked for it, and may yet answer. */
bool shm_foreign_arena_is_asked(const struct shm_link *link, uint32_t number);
/* The answer to our question: a descriptor (it stays the caller's), or -1. */
void shm_foreign_arena_arrived(struct shm_remote *remote, uint32_t number, int fd);
void shm_foreign_arenas_close(struct shm_remote *remote);

/* ------------------------------------------------------------------------------------------------------------ death.c */

/*
 * The remote domain of that token, with one more use. Takes over `event_fd`. `connection`: a socket that leads to it; with
 * `keep` a duplicate stays open in place of a pidfd. NULL with *error: -ESRCH when the process is dead, -ENOMEM, -EMFILE.
 */
struct shm_remote *shm_remote_get(struct shm_domain *domain, uint64_t token, int connection, uint64_t start_time,
                                  int event_fd, bool keep, int *error);
void shm_remote_release(struct shm_remote *remote);
/* Whether its process is dead, also when no progress has noticed it. */
bool shm_remote_has_died(const struct shm_remote *remote);
/* Whether the process at the other end of a connection can be watched without it. */
bool shm_peer_is_watchable(const struct shm_domain *domain, int connection);
/* Whether the memory of the process of that pid can be read, and has the link's incarnation where only it has. */
bool shm_process_is_same(const struct shm_link *link);
/* Field 22 of /proc/<pid>/stat (0: ourselves); 0: unknown. */
uint64_t shm_process_start_time(int32_t pid);
/* The pid at the other end, as seen from here, and whether it is the same user's. */
int shm_peer_credentials(int connection, int32_t *pid);

/* Whether the process at the other end of a connection is the one of the link. */
bool shm_link_is_of(const struct shm_link *link, int connection);

/* ------------------------------------------------------------------------------------------------------------- meet.c */

int shm_listen(struct shm_endpoint *endpoint, const char *service, char *text, size_t text_size);
void shm_listen_close(struct shm_endpoint *endpoint);
/* Begin to reach the peer of a link in state SHM_LINK_ASKING. */
int shm_meet_start(struct shm_link *link);
/* Ask the owner of a link for an arena. */
int shm_meet_ask_arena(struct shm_link *link, uint32_t number);
/* Tell the owner of a link, whose ring is full, that we are closed. */
void shm_meet_goodbye(struct shm_link *link);
/* Close every exchange about this link (NULL: all). */
void shm_meetings_drop(struct shm_endpoint *endpoint, const struct shm_link *link);

#endif
