/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects and their bounds. Everything is guarded by the domain's lock, which the core holds around every
 * call into the provider.
 *
 *     endpoint ── connections   one per peer, or more for a moment: handshakes, farewells
 *              ├─ ready         those with something to read
 *              ├─ dirty         those with something to write that nobody has tried to write yet
 *              ├─ stalled       those that are not read because the core has no room
 *              └─ dead          those that are over; freed when nobody is inside any more
 */
#ifndef TCP_OBJECTS_H
#define TCP_OBJECTS_H

#include "address/address.h"
#include "stream/descriptor.h"
#include "meet/meet.h"
#include "ofipy/services.h"
#include "stream/stream.h"
#include "stream/wire.h"

#define TCP_NAME "tcp"
/* What one read takes in that has no place of its own yet; shared by the connections of a domain. */
#define TCP_SCRATCH (UINT64_C(32) << 10)
/* A chunk of the output queue, with its head. */
#define TCP_CHUNK (UINT64_C(16) << 10)
/* Payload up to this is copied when it cannot leave at once, so that its sender is done with it. */
#define TCP_COPY_MAX UINT64_C(4096)
/* Copies that wait in a queue; beyond it messages wait in their sender's memory, whose number the core bounds. */
#define TCP_COPIES_MAX (UINT64_C(256) << 10)
/* Answers that a peer has asked for and does not read; beyond it nothing more is read from it. */
#define TCP_ANSWERS_MAX (UINT64_C(1) << 20)
#define TCP_ANSWER_ITEMS_MAX 4096
/* Reads and fetching atomics under way to one peer, so that two peers that read from each other stay below that. */
#define TCP_READS_MAX 256
/* Reads of one socket in one call of progress, and small pieces of one write. */
#define TCP_READ_TURNS 4
#define TCP_IOV_MAX 64
/* Bytes of eager payload that a peer of ours is granted at least, and what a message costs beside its payload: as
 * much as the core keeps of it. */
#define TCP_WINDOW_MIN (UINT64_C(64) << 10)
#define TCP_MESSAGE_COST 256
/* Bytes of the operands of an atomic. */
#define TCP_ATOMIC_MAX (1u << 20)
/* The kernel's bound on the name. */
#define TCP_CONGESTION_CONTROL_MAX 16
#define TCP_KEY_MAX 1024
#define TCP_NONCE_WORDS 4
#define TCP_PROOF_SIZE 32
/* Length of the private data that the other protocol over tcp sends. */
#define TCP_RXM_SIZE 24
/* What to do about it. */
#define TCP_RXM_REMEDY                                                                                                 \
    "; use FI_PROVIDER=net there, or libfabric 1.18 or newer (1.17's provider tcp has no reliable datagrams of its own)"
/* Connections that have not said who they are; beyond it the oldest goes. */
#define TCP_UNPROVEN_MAX 256
#define TCP_ACCEPT_BATCH 32
#define TCP_BACKLOG 4096

#define TCP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TCP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define TCP_MILLISECOND UINT64_C(1000000)
#define TCP_SECOND UINT64_C(1000000000)

extern const struct ofp_core *tcp_core; /* set once, when the provider is loaded */

/* One epoll descriptor and how often it is asked: an endpoint's own, or (type MSG) that of all in the domain. poller.c */
struct tcp_poller {
    struct ofp_list members; /* endpoints; the first of them asks for all */
    int epoll_fd;
    uint32_t armed;             /* members that somebody sleeps for: while there are any, the reactor watches it */
    uint64_t polled_at;         /* when epoll was last asked */
    uint64_t poll_pause;        /* ns until it is next, unless nothing is hot */
    struct tcp_connection *hot; /* read last */
    struct tcp_connection *unwatched; /* hot for so long that epoll does not watch it; NULL: none. Not while armed */
    uint32_t hot_turns;               /* how long, in calls of progress */
    struct tcp_endpoint *listening;   /* whose listener is among the sockets; NULL: none */
    struct ofp_watch watch;
};

struct tcp_domain {
    struct ofp_domain *base;
    char *scratch;                                       /* TCP_SCRATCH bytes; NULL until the first endpoint */
    struct tcp_poller shared;                            /* by endpoints of type MSG; open while it has members */
    uint64_t connect_ns;                                 /* until a peer must have answered */
    unsigned user_timeout_ms;                            /* until unacknowledged data ends a connection */
    uint64_t rendezvous_size;                            /* tagged messages to stock peers with more bytes take it */
    char congestion_control[TCP_CONGESTION_CONTROL_MAX]; /* empty: the system's, and none that paces within the host */
    bool extension;                                      /* offer it to peers, and take theirs */
    size_t key_length;                                   /* bytes of `key`; 0: peers prove nothing */
    uint8_t key[TCP_KEY_MAX];
    struct ofp_list chunks; /* unused ones, struct tcp_item; queue.c */
    uint32_t chunk_count;
};

enum tcp_state {
    TCP_CONNECTING, /* TCP's own handshake, or (no socket) the time until the next one */
    TCP_REQUESTING, /* our request is out */
    TCP_ACCEPTED,   /* it connected, and has not said who it is */
    TCP_REQUESTED,  /* type MSG: it said what it wants, and the program has to answer */
    TCP_PROVING,    /* it said so, and has to prove it */
    TCP_UP,
    TCP_PROBING, /* it ended without a word: is anybody there still? */
    TCP_LEAVING, /* the core has let go of it: what is queued still leaves */
    TCP_OVER
};

/* Where the payload under way goes. */
enum tcp_target {
    TCP_TARGET_NONE, /* it is dropped */
    TCP_TARGET_RECEIVE,
    TCP_TARGET_READ,  /* into the memory of our own read */
    TCP_TARGET_WRITE, /* into a region here */
    TCP_TARGET_ATOMIC /* operands, until they are complete */
};

/* An atomic request of a peer while it arrives. */
struct tcp_operands {
    struct tcp_header header;
    _Alignas(16) uint8_t bytes[];
};

/* Access to local memory by a peer, for one of its requests. */
struct tcp_accesses {
    uint32_t count;
    uint64_t length; /* of all */
    struct ofp_remote_access access[TCP_REMOTE_MAX];
};

/* Reading: a header, or a payload with `left` bytes to come. */
struct tcp_inbound {
    uint8_t received; /* bytes of `header` */
    uint8_t target;
    uint8_t op;
    uint16_t flags;
    uint64_t left, offset; /* `offset`: bytes of it that are in place */
    uint64_t space;        /* bytes of it that have a place */
    uint64_t data, length; /* of a write: remote cq data, and its length */
    int refused;           /* TCP_TARGET_NONE: what its sender is told in place of an acknowledgement; positive */
    union {
        struct ofp_receive *receive;
        struct ofp_pending *pending;
        struct tcp_accesses *accesses; /* owned */
        struct tcp_operands *operands; /* owned */
    };
    uint8_t header[TCP_HEADER_MAX];
};

struct tcp_race; /* race.h */

/* While a connection is not up; handshake.c. */
struct tcp_meeting {
    struct tcp_connection *connection;
    struct ofp_timer timer;
    struct ofpi_backoff backoff;
    struct tcp_race *race;     /* who connects to a peer with several addresses; else NULL */
    union tcp_address address; /* where it listens */
    uint64_t nonce[TCP_NONCE_WORDS], their_nonce[TCP_NONCE_WORDS]; /* auth.c */
    const uint8_t *key; /* what both prove, the configured one or the endpoint's for this host; */
    size_t key_length;  /* 0: nothing is proven */
    uint32_t received;  /* bytes of `bytes` */
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    int error;                           /* what ended the connection, probe.c; or the last attempt, connect.c */
    bool answered, second_attempt;       /* there: somebody opened; and this is the second time that he is asked */
    bool warned;                         /* of a lack of descriptors, connect.c */
    bool identified;                     /* request and answer say which endpoints these are, */
    uint8_t identity[OFP_IDENTITY_SIZE]; /* and the peer's is this */
    bool connects_only;                  /* nobody connects to it, as its request says */
    uint16_t private_length;             /* type MSG, who asks: its private data */
    uint8_t private_data[TCP_PRIVATE_MAX];
};

struct tcp_rendezvous; /* rendezvous.c */

struct tcp_connection {
    /* What a poll, a post and a read look at first. */
    struct tcp_stream stream;
    struct tcp_endpoint *endpoint;
    struct ofp_peer *peer; /* NULL: nobody yet, or nobody any more */
    uint8_t state;         /* enum tcp_state; connection.c has the allowed changes */
    bool swapped;          /* its data headers are in the other byte order */
    bool extended;         /* it agreed to the extension */
    bool knows_internal;   /* and knows the internal channel */
    bool can_rendezvous;
    bool connector; /* we opened it */
    bool hangup;    /* the end of the stream, or an error, is near: read until it shows */
    bool blocked;   /* the socket is full: epoll tells when it is not */
    bool shut;      /* nothing more is written */
    bool stalled;
    bool hello_received; /* its first message of the extension is here */
    bool proven;         /* type MSG: it has the key, and may say what it wants */
    bool goodbye;        /* it said goodbye, */
    bool ended;          /* and that its endpoint closes */
    uint8_t next_id;
    int failure; /* positive: why the next call of progress ends it */

    uint64_t incarnation; /* of the peer's endpoint, or, where it does not say which that is, of its process */
    struct ofp_list out;  /* struct tcp_item: to be written, in order */
    uint64_t out_bytes;   /* copies and headers among it */
    uint32_t out_answers;
    uint32_t sent_in_round;         /* the endpoint's `looks` when a message last left at once, */
    uint64_t sent_at;               /* and the time */
    struct ofp_list batched;        /* struct tcp_pending: copied into `out`, and finished when it is next written */
    uint64_t batched_bytes;         /* of messages that wait in `out` for others, */
    uint64_t batched_since;         /* the first of them since then */
    uint32_t read_count, announced; /* operations of ours that wait for an answer, or to be pulled */
    struct ofp_list acks;           /* struct tcp_pending: operations whose acknowledgement is to come, in order */
    struct ofp_list reads;          /* and those whose answer is */
    struct tcp_inbound in;
    char *stash; /* stalled: what was read and could not be handed on */
    size_t stash_length;
    uint64_t stalled_at; /* stalled: since when the core has taken nothing of it */

    uint64_t credit;                   /* what our messages may still cost it */
    uint64_t allowance, owed;          /* what its messages may still cost us, and what it gets back */
    struct ofp_list creditor;          /* in endpoint->creditors while we owe it and are full */
    struct tcp_rendezvous *rendezvous; /* NULL until the first one */
    struct tcp_meeting *meeting;       /* NULL when up */
    struct ofp_list node;              /* in endpoint->connections or ->dead */
    struct ofp_list ready, dirty, stall, unproven;
};

_Static_assert(sizeof(struct tcp_connection) <= 640, "under 1 KiB for an idle peer, with the core's own part");

struct tcp_peer {
    struct tcp_connection *connection; /* that carries what we send; NULL: none */
    struct tcp_connection *inbound;    /* the endpoint is its own peer: the other end */
    uint8_t meet;                      /* enum ofpi_meet_state */
    uint8_t reached;                   /* 0: at its address; else at others[reached - 1] */
};

/* What the provider keeps in an operation under way; in ofp_pending.provider_data. */
struct tcp_pending {
    struct ofp_list node; /* in connection->acks, ->reads or ->held */
    bool unacked;         /* its end is an acknowledgement */
    bool sent;            /* the kernel has all of it */
    bool announced;       /* it waits to be pulled */
    uint8_t rendezvous;   /* its id, 0: none */
};
_Static_assert(sizeof(struct tcp_pending) <= sizeof(((struct ofp_pending *)0)->provider_data), "lies in a pending");

/*
 * What becomes of an endpoint's connections, by its kind: rdm.c, msg.c, passive.c. What brings connections up, reads and
 * ends them knows no kind, and tells here. An entry is NULL for what cannot happen to this kind.
 */
struct tcp_connection_ops {
    /* TCP's handshake may be over: our request leaves. 0, or a negative errno; -EAGAIN, -ENOTCONN: not yet. */
    int (*request)(struct tcp_connection *connection);
    void (*answered)(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data);
    void (*requested)(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t *private_data);
    /* Both sides have the key. */
    void (*proven)(struct tcp_connection *connection);
    /* Who compared keys with us does not want our connection now. */
    void (*deferred)(struct tcp_connection *connection);
    /* The stream is at its end, or broken (error positive). */
    void (*lost)(struct tcp_connection *connection, int error);
};

struct tcp_endpoint {
    struct ofp_endpoint *base;
    struct tcp_domain *domain;
    const struct tcp_connection_ops *ops;
    struct tcp_poller *poller; /* `own`, or domain->shared */
    struct ofp_list member;    /* in poller->members */
    struct ofp_list ready, dirty, stalled, creditors;
    char *scratch; /* the domain's */
    struct ofp_list connections, dead, unproven;
    uint32_t unproven_count;
    bool armed, closing, warned_accept, warned_stall;
    uint32_t rounds;           /* calls of progress */
    uint8_t rendezvous_last;   /* the id given last */
    union tcp_address address; /* that it is known by; the port is 0 until it is bound */
    sa_family_t
        anywhere; /* AF_INET6, AF_INET: bound to :: or 0.0.0.0, and calls from whichever address leads there; 0: to its own */
    int listener;                  /* -1: none, or not now; of who only connects a socket that holds the port */
    struct ofp_timer listen_timer; /* out of descriptors: listen again */
    struct ofp_timer stall_timer;
    uint64_t stall_pause;
    uint64_t refused_at;            /* when the log last said that somebody is; 0: never */
    bool connects;                  /* type MSG */
    struct ofp_passive *passive;    /* a listener's; then `base` is NULL */
    struct tcp_connection *request; /* that it was opened from, and has not answered */
    struct ofp_peer *shutting_down; /* shut down, as soon as nothing is under way to it */
    struct tcp_poller own;
};

/* What messages in the log call it. */
static inline uint32_t tcp_endpoint_id_of(const struct tcp_endpoint *endpoint)
{
    return endpoint->passive ? endpoint->passive->id : endpoint->base->id;
}

static inline struct tcp_domain *tcp_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct tcp_endpoint *tcp_endpoint_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }
static inline struct tcp_peer *tcp_peer_of(const struct ofp_peer *peer) { return peer->private; }
static inline struct tcp_pending *tcp_pending_of(struct ofp_pending *pending)
{
    return (struct tcp_pending *)(void *)pending->provider_data;
}
static inline struct ofp_pending *tcp_base_pending_of(struct tcp_pending *pending)
{
    return OFP_CONTAINER_OF(pending, struct ofp_pending, provider_data);
}

/* Something may be there to be read, or done. */
static inline void tcp_connection_schedule_read(struct tcp_connection *connection)
{
    if (!ofp_list_linked(&connection->ready))
        ofp_list_append(&connection->endpoint->ready, &connection->ready);
}
/* From within a call that cannot end it: progress does. */
static inline void tcp_connection_mark_failed(struct tcp_connection *connection, int error)
{
    if (!connection->failure)
        connection->failure = error;
    tcp_connection_schedule_read(connection);
}
/* At the next flush of the endpoint, at the latest with progress. */
static inline void tcp_connection_schedule_flush(struct tcp_connection *connection)
{
    if (!ofp_list_linked(&connection->dirty))
        ofp_list_append(&connection->endpoint->dirty, &connection->dirty);
}

#endif
