/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects and their bounds. The domain's lock guards all of them; the core holds it during every call
 * into
 * the provider.
 *
 *     endpoint ── connections   one per peer; more while connections are set up or closed
 *              ├─ ready         connections that may have data to read
 *              ├─ dirty         connections with output that no write has been tried for yet
 *              ├─ stalled       connections that are not read because the core has no space
 *              ├─ creditors     connections whose peer is owed credit that the endpoint cannot grant yet
 *              └─ dead          ended connections; freed at the end of progress, when no caller uses them any more
 */
#ifndef TCP_OBJECTS_H
#define TCP_OBJECTS_H

#include "address/address.h"
#include "connection/source.h"
#include "stream/descriptor.h"
#include "meet/manager.h"
#include "meet/versions.h"
#include "ofipy/bounds.h"
#include "ofipy/check.h"
#include "ofipy/services.h"
#include "proof/keyring.h"
#include "stream/stream.h"
#include "stream/tls_files.h"
#include "stream/wire.h"

#define TCP_NAME "tcp"
/* Size of the buffer for input that has no destination yet. All connections of a domain share it. */
#define TCP_SCRATCH (UINT64_C(32) << 10)
/* Bytes of a layout that are packed for one write. */
#define TCP_PACKED (UINT64_C(64) << 10)
/* Size of one chunk of the output queue, including its header. */
#define TCP_CHUNK (UINT64_C(16) << 10)
/* Longest payload that is copied when it cannot be written at once, so that its operation completes. */
#define TCP_COPY_MAX UINT64_C(4096)
/*
 * Limit of the copied bytes in one output queue. Beyond it, operations stay in their sender's memory; the core bounds
 * their number.
 */
#define TCP_COPIES_MAX (UINT64_C(256) << 10)
/*
 * Limits of the queued answers to one peer's requests. Beyond them the connection is not read, so the peer cannot
 * request more.
 */
#define TCP_ANSWERS_MAX (UINT64_C(1) << 20)
#define TCP_ANSWER_ITEMS_MAX 4096
/*
 * Reads and fetching atomics in flight to one peer. Lower than TCP_ANSWER_ITEMS_MAX, so two peers that read from each
 * other cannot block.
 */
#define TCP_READS_MAX 256
/* Reads of one socket in one call of progress, and pieces of memory in one write. */
#define TCP_READ_TURNS OFP_ROUND_BOUND(4)
#define TCP_IOV_MAX 64
/*
 * Bytes of eager payload that every ofipy peer is granted at least, and the cost of a message beside its payload. The
 * cost is about what the core allocates for an unexpected message.
 */
#define TCP_WINDOW_MIN (UINT64_C(64) << 10)
#define TCP_MESSAGE_COST 256
/* Longest operand of an atomic, in bytes. */
#define TCP_ATOMIC_MAX (1u << 20)
/* The kernel's limit for the name of a congestion control. */
#define TCP_CONGESTION_CONTROL_MAX 16
#define TCP_NONCE_WORDS 4
#define TCP_PROOF_SIZE 32 /* bytes of the op TCP_PROOF's words */
/* Length of the private data that ofi_rxm sends. ofi_rxm is libfabric's other protocol over tcp. */
#define TCP_RXM_SIZE 24
/* Advice for the error text when a peer uses ofi_rxm. */
#define TCP_RXM_REMEDY                                                                                                 \
    "; use FI_PROVIDER=net there, or libfabric 1.18 or newer (1.17's provider tcp has no reliable datagrams of its own)"
/* Accepted connections whose request or proof is not complete. Beyond this number the oldest is closed. */
#define TCP_UNPROVEN_MAX 256
#define TCP_ACCEPT_BATCH 32
/* The same where connections are encrypted, so that a flood of them does not delay peers that are up. */
#define TCP_ACCEPT_BATCH_ENCRYPTED 2
#define TCP_BACKLOG 4096

#define TCP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TCP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define TCP_MILLISECOND UINT64_C(1000000)
#define TCP_SECOND UINT64_C(1000000000)

extern const struct ofp_core *tcp_core; /* set once, when the provider is loaded */

/*
 * One epoll descriptor and how often it is polled. An RDM endpoint or a listener has its own; all MSG endpoints of a
 * domain share one. See poller.c.
 * Invariants: `armed` counts the members with `endpoint->armed`, and the reactor watches `epoll_fd` while it is not 0.
 * `unwatched` is NULL while `armed` is not 0, since a sleeping thread depends on epoll alone.
 */
struct tcp_poller {
    struct ofp_list members; /* endpoints; the first one polls for all */
    int epoll_fd;
    uint32_t armed;             /* members with a sleeping thread; the reactor watches epoll_fd unless this is 0 */
    uint64_t polled_at;         /* time of the last poll */
    uint64_t poll_pause;        /* minimum ns between polls while there is a hot connection */
    struct tcp_connection *hot; /* the connection that was read last; NULL: none */
    struct tcp_connection *unwatched; /* removed from epoll because it was hot for long; NULL: none */
    uint32_t hot_turns;         /* calls of progress that have read a hot connection since `unwatched` was reset */
    struct ofp_list handshakes; /* struct tcp_meeting: TLS handshakes that wait for their turn */
    struct ofp_timer turn;      /* for the first of them, while all wait for the accounts of their sources */
    struct tcp_source sources[TCP_SOURCES];
    struct tcp_endpoint *listening; /* the endpoint whose listening socket is in epoll; NULL: none */
    struct ofp_watch watch;
};

/* Which connections of a domain are encrypted. */
enum tcp_encryption {
    TCP_ENCRYPT_NONE,
    TCP_ENCRYPT_BETWEEN_HOSTS, /* all but those within this host, whose proof covers the host */
    TCP_ENCRYPT_ALL
};

struct tcp_domain {
    struct ofp_domain *base;
    char *scratch;            /* TCP_SCRATCH bytes, then TCP_PACKED; NULL until the first endpoint */
    struct tcp_poller shared; /* used by MSG endpoints; open while it has members */
    uint64_t connect_ns;      /* time within which a peer must answer a connection request */
    unsigned user_timeout_ms; /* time after which unacknowledged data ends a connection */
    /* tagged messages to libfabric peers that are longer than this use rendezvous */
    uint64_t rendezvous_size;
    char congestion_control[TCP_CONGESTION_CONTROL_MAX]; /* empty: the system's default, or reno within the host */
    bool extension;                                      /* offer the extension to peers, and accept theirs */
    struct ofpi_key_files keys;                          /* the configured keys, of which peers must prove one */
    enum tcp_encryption encryption; /* by OFIPY_ENCRYPTION, and by whether there is a certificate */
    struct tcp_tls_files files;
    uint64_t host_id;            /* core->host_id; 0: not known, so no connection counts as within this host */
    struct tcp_tls_context *tls; /* owned; NULL until the first connection is encrypted */
    struct ofp_list chunks;      /* unused chunks of output queues (struct tcp_item); see queue.c */
    uint32_t chunk_count;
};

enum tcp_state {
    TCP_CONNECTING, /* TCP's handshake is in progress, or (no socket) the back-off timer runs */
    TCP_REQUESTING, /* our connection request is sent; the answer is missing */
    TCP_ACCEPTED,   /* the peer has connected; its connection request is missing */
    TCP_REQUESTED,  /* MSG: the request has arrived; the program has to accept or reject it */
    TCP_PROVING,    /* request and answer were exchanged; the proof of the key is missing */
    TCP_UP,
    TCP_PROBING, /* the stream ended without a goodbye; a second connection probes whether the peer listens */
    TCP_LEAVING, /* the core has released the peer; queued output is still written */
    TCP_OVER
};

/* Destination of the payload that is being received. */
enum tcp_target {
    TCP_TARGET_NONE, /* no memory: the payload is discarded */
    TCP_TARGET_RECEIVE,
    TCP_TARGET_READ,  /* memory of our own read */
    TCP_TARGET_WRITE, /* a region here */
    TCP_TARGET_ATOMIC /* operands, collected until they are complete */
};

/* An atomic request of a peer while its operands arrive. */
struct tcp_operands {
    struct tcp_header header;
    _Alignas(16) uint8_t bytes[];
};

/* The local memory that one request of a peer names. Holds one reference of the core per segment. */
struct tcp_accesses {
    uint32_t count;
    uint64_t length; /* sum of all segments */
    struct ofp_remote_access access[TCP_REMOTE_MAX];
};

/*
 * State of reading: between messages (`left` is 0) the bytes of a split header, else a payload with `left` bytes
 * missing.
 * `target` selects the member of the union. The accesses and operands are owned, and are freed with the payload.
 */
struct tcp_inbound {
    uint8_t received; /* bytes in `header`; 0: no header is incomplete */
    uint8_t target;
    uint8_t op;
    uint16_t flags;
    uint64_t left, offset; /* `offset`: bytes of the payload that have been received */
    uint64_t space;        /* bytes of the payload that have a destination; the rest is discarded */
    uint64_t data, length; /* of a write: remote CQ data, and the length for the event */
    int refused;           /* TCP_TARGET_NONE: the error that is sent in place of an acknowledgement; 0: none */
    union {
        struct ofp_receive *receive;
        struct ofp_pending *pending;
        struct tcp_accesses *accesses; /* owned */
        struct tcp_operands *operands; /* owned */
    };
    uint8_t header[TCP_HEADER_MAX];
};

struct tcp_race;        /* race.h */
struct tcp_tls_context; /* tls.h */

/*
 * State of connection setup, closing and probing. A connection in state TCP_UP has none. `timer` is stopped before the
 * meeting is freed.
 */
struct tcp_meeting {
    struct tcp_connection *connection;
    struct ofp_list handshake; /* in poller->handshakes while the peer's part of the TLS handshake waits to be read */
    uint8_t source;            /* of an accepted connection: which of the poller's sources it came from */
    struct ofp_timer timer;
    uint64_t deadline;         /* of this attempt, probe or farewell */
    struct tcp_race *race;     /* for a peer with several addresses that we connect to; else NULL */
    union tcp_address address; /* the address at which the peer listens */
    uint64_t nonce[TCP_NONCE_WORDS], their_nonce[TCP_NONCE_WORDS]; /* see auth.c */
    uint8_t their_version;     /* the extension's, as the peer's last control message says it; 0: it has no extension */
    struct ofpi_keyring *ring; /* one user: the domain's ring when this connection began; NULL: no key is set */
    uint32_t key_number;       /* of the ring's key that this connector proves */
    const uint8_t *key;        /* the key that both sides prove: of the ring, or the endpoint's key for this host */
    size_t key_length;         /* 0: no proof is demanded */
    /* versions of the peer, if no version of it is one of ours: see refusal.c; newest 0: not so */
    struct ofpi_versions foreign;
    uint32_t received; /* bytes in `bytes`, an incomplete control message or header */
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    int error;                           /* probe.c: the error that ended the connection */
    bool answered, second_attempt;       /* probe.c: the probe's connection was accepted; this is the second probe */
    bool identified;                     /* requests and answers of this connection contain endpoint identities */
    uint8_t identity[OFP_IDENTITY_SIZE]; /* the peer's identity, once it has arrived */
    bool connects_only;                  /* the peer's request says that it does not listen */
    bool must_encrypt;                   /* a plain attempt within the host was refused, so the next one is encrypted */
    uint16_t private_length;             /* MSG, connecting side: length of the program's private data */
    uint8_t private_data[TCP_PRIVATE_MAX];
};

struct tcp_rendezvous; /* rendezvous.c */

struct tcp_connection {
    /* Members that polls, posts and reads use come first, to share cache lines. */
    struct tcp_stream stream;
    struct tcp_endpoint *endpoint;
    struct ofp_peer *peer; /* NULL before the peer is known, and after it was detached */
    uint8_t state;         /* enum tcp_state; connection.c has the allowed transitions */
    bool swapped;          /* the peer's data headers are in the other byte order */
    bool extended;         /* both sides agreed to use the extension */
    bool knows_internal;   /* and the peer supports the internal channel */
    bool can_rendezvous;
    bool connector; /* this side opened the connection */
    bool hangup;    /* the stream has ended or failed; read on until a read reports it */
    bool blocked;   /* the socket accepts no more output; epoll reports when it does */
    bool shut;      /* nothing more may be written */
    bool stalled;
    bool hello_received; /* the peer's hello, its first message of the extension, has arrived */
    bool proven;         /* the peer has proved the key; MSG: so its next request counts */
    bool goodbye;        /* the peer has said goodbye, */
    bool ended;          /* and that its endpoint closes */
    bool unacked_write;  /* a libfabric peer: the last write was not acknowledged, so a flush must be */
    uint8_t next_id;
    int failure;        /* marked failed: the positive errno with which progress ends the connection; 0: not marked */
    int output_failure; /* `shut`: the positive errno of the write that failed; 0: none has */

    uint64_t incarnation; /* of the peer's endpoint; of its process, if the peer sends no identity */
    struct ofp_list out;  /* struct tcp_item: unwritten output, in order */
    uint64_t out_bytes;   /* bytes of the copies and headers in `out` */
    uint32_t out_answers;
    uint32_t sent_in_round;         /* endpoint->rounds when a message was last written at once, */
    uint64_t sent_at;               /* and the time of that write */
    struct ofp_list batched;        /* struct tcp_pending: copied into `out`; they complete at the next flush */
    uint64_t batched_bytes;         /* bytes of batched messages in `out`, */
    uint64_t batched_since;         /* and the time when the first of them was queued */
    uint32_t read_count, announced; /* our operations that wait for an answer, and those that wait for a pull */
    struct ofp_list acks;           /* struct tcp_pending: operations that wait for an acknowledgement, in order */
    /* struct tcp_pending: reads and fetching atomics that wait for an answer, in order */
    struct ofp_list reads;
    struct tcp_inbound in;
    char *stash; /* stalled: input that the core had no space for */
    uint32_t stash_length;
    uint32_t asked;      /* stalled: HANGUP_TIMEOUTs after `stalled_at` at which the peer was last asked if it lives */
    uint64_t stalled_at; /* stalled: time when the core last accepted input */

    union {
        struct {                /* `extended` */
            uint64_t credit;    /* bytes that our messages may still cost at the peer */
            uint64_t allowance; /* bytes that the peer's messages may still cost here */
        };
        struct { /* a libfabric peer: the place of the last write, if it was not acknowledged */
            uint64_t unacked_offset, unacked_key;
        };
    };
    uint64_t owed;                     /* bytes of `allowance` to grant again */
    struct ofp_list creditor;          /* in endpoint->creditors while credit is owed and the core has no space */
    struct tcp_rendezvous *rendezvous; /* NULL until the first rendezvous */
    struct tcp_meeting *meeting;       /* NULL in state TCP_UP */
    struct ofp_list node;              /* in endpoint->connections or ->dead */
    struct ofp_list ready, dirty, stall, unproven;
};

_Static_assert(sizeof(struct tcp_connection) <= 640, "under 1 KiB for an idle peer, with the core's own part");

struct tcp_peer {
    struct tcp_connection *connection; /* carries our operations; NULL: none */
    struct tcp_connection *inbound;    /* the accepted end, if the endpoint is its own peer; else NULL */
    struct ofpi_meeting met;           /* RDM: the state of native/meet */
    /* number of the address that was connected: 0: peer->address; TCP_REACHED_LOOPBACK; else others[reached - 1] */
    uint8_t reached;
};

/* The provider's state of an operation in flight, in ofp_pending.provider_data. */
struct tcp_pending {
    struct ofp_list node; /* in connection->acks, ->reads or ->batched */
    bool unacked;         /* the operation completes with an acknowledgement */
    bool sent;            /* all of it was written or copied */
    bool announced;       /* the operation waits for the peer's pull */
    uint8_t rendezvous;   /* rendezvous id; 0: none */
};
_Static_assert(sizeof(struct tcp_pending) <= sizeof(((struct ofp_pending *)0)->provider_data), "lies in a pending");

/*
 * Handlers of one kind of endpoint: rdm.c, msg.c, passive.c. The files of `stream`, `connection` and `message` serve
 * every kind, and report the events of a connection here. An entry is NULL where the event cannot happen.
 */
struct tcp_connection_ops {
    const struct ofpi_meeting_ops *meeting; /* RDM: for the manager of native/meet */
    /*
     * TCP may have connected: send the connection request. 0, or a negative errno; -EAGAIN, -ENOTCONN: not connected
     * yet.
     */
    int (*request)(struct tcp_connection *connection);
    void (*answered)(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data);
    void (*requested)(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t *private_data);
    /* The peer has proved the key. */
    void (*proven)(struct tcp_connection *connection);
    /* The stream has ended (error 0) or failed (error positive). */
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
    uint32_t rounds;         /* calls of progress so far */
    uint8_t rendezvous_last; /* the rendezvous id that was allocated last */
    bool connects;           /* type MSG */
    /* AF_INET6 or AF_INET: bound to :: or 0.0.0.0, so connections leave from the address of the route; 0: to `address` */
    sa_family_t anywhere;
    union tcp_address address; /* the address that peers know; the port is 0 until the socket is bound */
    /* -1: none. An endpoint that only connects has an unused socket here, which reserves the port */
    int listener;
    struct ofp_timer listen_timer; /* resumes accepting after a shortage of descriptors */
    struct ofp_timer stall_timer;
    uint64_t stall_pause;
    uint64_t refused_at;            /* when the log last warned of a rejected connection; 0: never */
    struct ofp_passive *passive;    /* of a listener, whose `base` is NULL */
    struct tcp_connection *request; /* MSG: the request that the endpoint was opened from, until it is answered */
    struct ofp_peer *shutting_down; /* MSG: the peer to disconnect once no operation is in flight */
    struct tcp_poller own;
};

/* The id that log messages contain. */
static inline uint32_t tcp_endpoint_id_of(const struct tcp_endpoint *endpoint)
{
    return endpoint->passive ? endpoint->passive->id : endpoint->base->id;
}

static inline struct tcp_domain *tcp_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct tcp_endpoint *tcp_endpoint_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }
/* Space for the next piece of a layout, TCP_PACKED bytes; valid until the next write of any connection. */
static inline char *tcp_packed_buffer_of(const struct tcp_endpoint *endpoint)
{
    return endpoint->scratch + TCP_SCRATCH;
}
static inline struct tcp_peer *tcp_peer_of(const struct ofp_peer *peer) { return peer->private; }
static inline struct tcp_pending *tcp_pending_of(struct ofp_pending *pending)
{
    return (struct tcp_pending *)(void *)pending->provider_data;
}
static inline struct ofp_pending *tcp_base_pending_of(struct tcp_pending *pending)
{
    return OFP_CONTAINER_OF(pending, struct ofp_pending, provider_data);
}

/* Have progress read the connection, or end it if it is marked failed. */
static inline void tcp_connection_schedule_read(struct tcp_connection *connection)
{
    OFP_CHECK(connection->state != TCP_OVER);
    if (!ofp_list_linked(&connection->ready))
        ofp_list_append(&connection->endpoint->ready, &connection->ready);
}
/* Record an error from within a call that cannot end the connection. The next call of progress ends it. */
static inline void tcp_connection_mark_failed(struct tcp_connection *connection, int error)
{
    if (!connection->failure)
        connection->failure = error;
    tcp_connection_schedule_read(connection);
}
/*
 * A write has failed with this positive errno. Progress first reads what the peer sent before. Then a read usually
 * reports the end, too; if the socket still accepts input, the connection ends with this error.
 */
static inline void tcp_connection_end_output(struct tcp_connection *connection, int error)
{
    connection->output_failure = error;
    connection->shut = connection->hangup = true;
    tcp_connection_schedule_read(connection);
}
/* Have the next flush of the endpoint, or progress, write the queue. */
static inline void tcp_connection_schedule_flush(struct tcp_connection *connection)
{
    OFP_CHECK(connection->state != TCP_OVER);
    if (!ofp_list_linked(&connection->dirty))
        ofp_list_append(&connection->endpoint->dirty, &connection->dirty);
}

#endif
