/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects and what its files do for each other. Everything is guarded by the domain's lock, which the core
 * holds around every call into the provider.
 *
 *     endpoint ── connections   one per peer, or more for a moment: handshakes, farewells
 *              ├─ ready         those with something to read
 *              ├─ dirty         those with something to write that nobody has tried to write yet
 *              ├─ stalled       those that are not read because the core has no room
 *              └─ dead          those that are over; freed when nobody is inside any more
 */
#ifndef TCP_H
#define TCP_H

#include "address.h"
#include "descriptor.h"
#include "ofipy/provider.h"
#include "stream.h"
#include "wire.h"

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
/* Bytes of eager payload that a peer of ours is granted at least, and what a message costs beside its payload. */
#define TCP_WINDOW_MIN (UINT64_C(64) << 10)
#define TCP_MESSAGE_COST 64
/* Bytes of the operands of an atomic. */
#define TCP_ATOMIC_MAX (1u << 20)
/* The kernel's bound on the name. */
#define TCP_CONGESTION_CONTROL_MAX 16
#define TCP_KEY_MAX 1024
#define TCP_NONCE_WORDS 4
#define TCP_PROOF_SIZE 32
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
    uint32_t turns;             /* calls of progress since epoll was asked, */
    uint32_t turns_to_look;     /* and after how many it is */
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
    uint64_t unexpected_size;                            /* bytes of unexpected payload that an endpoint keeps */
    char congestion_control[TCP_CONGESTION_CONTROL_MAX]; /* empty: the system's, and none that paces within the host */
    bool extension;                                      /* offer it to peers, and take theirs */
    size_t key_length;                                   /* bytes of `key`; 0: peers prove nothing */
    uint8_t key[TCP_KEY_MAX];
    struct ofp_list chunks; /* unused ones, struct tcp_item; queue.c */
    uint32_t chunk_count;
};

enum tcp_state {
    TCP_CONNECTING, /* TCP's own handshake */
    TCP_ASKING,     /* our request is out */
    TCP_WAITING,    /* it was refused, since the peer's own is on its way */
    TCP_ACCEPTED,   /* it connected, and has not said who it is */
    TCP_REQUESTED,  /* type MSG: it said what it wants, and the program has to answer */
    TCP_PROVING,    /* it said so, and has to prove it */
    TCP_UP,
    TCP_KNOCKING, /* it ended without a word: is anybody there still? */
    TCP_LEAVING,  /* the core has let go of it: what is queued still leaves */
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
    uint8_t have; /* bytes of `header` */
    uint8_t target;
    uint8_t op;
    uint16_t flags;
    uint64_t left, offset; /* `offset`: bytes of it that are in place */
    uint64_t room;         /* bytes of it that have a place */
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

/* While a connection is not up; meet.c. */
struct tcp_meeting {
    struct tcp_connection *connection;
    struct ofp_timer timer;
    uint64_t deadline, pause;
    union tcp_address address;                                     /* where it listens */
    uint64_t nonce[TCP_NONCE_WORDS], their_nonce[TCP_NONCE_WORDS]; /* prove.c */
    uint32_t have;                                                 /* bytes of `bytes` */
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    int error;            /* what ended the connection; knock.c */
    bool answered, again; /* there: somebody opened; and this is the second time that he is asked */
    uint16_t said_length; /* type MSG, who asks: its private data */
    uint8_t said[TCP_PRIVATE_MAX];
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
    bool can_rendezvous;
    bool connector; /* we opened it */
    bool doubted;   /* the peer has asked for another one in spite of it */
    bool hangup;    /* the end of the stream, or an error, is near: read until it shows */
    bool blocked;   /* the socket is full: epoll tells when it is not */
    bool shut;      /* nothing more is written */
    bool stalled;
    bool greeted;  /* its first message of the extension is here */
    bool proven;   /* type MSG: it has the key, and may say what it wants */
    bool farewell; /* it said goodbye, */
    bool ended;    /* and that its endpoint closes */
    uint8_t next_id;
    uint32_t pid;
    int doom; /* positive: why the next call of progress ends it */

    struct ofp_list out; /* struct tcp_item: to be written, in order */
    uint64_t out_bytes;  /* copies and headers among it */
    uint32_t out_answers;
    uint32_t read_count, announced; /* operations of ours that wait for an answer, or to be pulled */
    struct ofp_list acks;           /* struct tcp_pending: operations whose acknowledgement is to come, in order */
    struct ofp_list reads;          /* and those whose answer is */
    struct tcp_inbound in;
    char *stash; /* stalled: what was read and could not be handed on */
    size_t stash_length;

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
};

/* What the provider keeps in an operation under way; in ofp_pending.provider_data. */
struct tcp_pending {
    struct ofp_list node; /* in connection->acks or ->reads */
    bool unacked;         /* its end is an acknowledgement */
    bool sent;            /* the kernel has all of it */
    bool announced;       /* it waits to be pulled */
    uint8_t rendezvous;   /* its id, 0: none */
};
_Static_assert(sizeof(struct tcp_pending) <= sizeof(((struct ofp_pending *)0)->provider_data), "lies in a pending");

struct tcp_endpoint {
    struct ofp_endpoint *base;
    struct tcp_domain *domain;
    struct tcp_poller *poller; /* `own`, or domain->shared */
    struct ofp_list member;    /* in poller->members */
    struct ofp_list ready, dirty, stalled, creditors;
    char *scratch; /* the domain's */
    struct ofp_list connections, dead, unproven;
    uint32_t unproven_count;
    bool armed, closing, complained, complained_stall;
    uint8_t rendezvous_last; /* the id given last */
    union tcp_address address;
    int listener;                  /* -1: none, or not now */
    struct ofp_timer listen_timer; /* out of descriptors: listen again */
    struct ofp_timer stall_timer;
    uint64_t stall_pause;
    bool connects;                  /* type MSG */
    struct ofp_passive *passive;    /* a listener's; then `base` is NULL */
    struct tcp_connection *request; /* that it was opened from, and has not answered */
    struct ofp_peer *quitting;      /* shut down, as soon as nothing is under way to it */
    struct tcp_poller own;
};

/* What messages in the log call it. */
static inline uint32_t tcp_endpoint_id(const struct tcp_endpoint *endpoint)
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
static inline struct ofp_pending *tcp_pending_base(struct tcp_pending *pending)
{
    return OFP_CONTAINER_OF(pending, struct ofp_pending, provider_data);
}

/* --------------------------------------------------------------------------------------------------------- endpoint.c */

int tcp_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
/* What endpoints and listeners have alike. */
int tcp_host_open(struct tcp_endpoint *endpoint, struct ofp_domain *domain, bool shares_poller);
void tcp_host_close(struct tcp_endpoint *endpoint);
int tcp_endpoint_drain(struct ofp_endpoint *base);
void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int tcp_endpoint_name(struct ofp_endpoint *base, void *address, size_t *length);
int tcp_progress(struct ofp_endpoint *base);
bool tcp_arm(struct ofp_endpoint *base);
void tcp_disarm(struct ofp_endpoint *base);
/* Ask epoll which sockets are ready. Returns how many. */
int tcp_poll(struct tcp_poller *poller);

/* ----------------------------------------------------------------------------------------------------------- poller.c */

/* The hot connection is read in every call of progress; after so many the others are looked at. */
#define TCP_LOOK_TURNS 16
/* The endpoint's own, or the one that is shared. */
int tcp_poller_join(struct tcp_endpoint *endpoint, bool shared);
void tcp_poller_leave(struct tcp_endpoint *endpoint);
/* Have the reactor watch it while this endpoint is armed: 0, or a negative errno. */
int tcp_poller_arm(struct tcp_endpoint *endpoint);
void tcp_poller_disarm(struct tcp_endpoint *endpoint);
static inline bool tcp_poller_is_asked_by(const struct tcp_endpoint *endpoint)
{
    return endpoint->poller->members.next == &endpoint->member;
}

/* ----------------------------------------------------------------------------------------------------------- listen.c */

/* A socket at the endpoint's address, which is completed by the port. */
int tcp_bind(struct tcp_endpoint *endpoint, const char *service, char *text, size_t text_size);
int tcp_listen(struct tcp_endpoint *endpoint);
void tcp_listen_close(struct tcp_endpoint *endpoint);
void tcp_accept(struct tcp_endpoint *endpoint);

/* ----------------------------------------------------------------------------------------------------------- socket.c */

/* Of every connection; `address`: at its other end. */
void tcp_socket_options(const struct tcp_endpoint *endpoint, int fd, const void *address, socklen_t length);
/* The parameter, which is tried out. */
int tcp_congestion_control_read(struct tcp_domain *domain);

/* ------------------------------------------------------------------------------------------------------- connection.c */

/* In state `state`, with a meeting; takes the descriptor over (-1: none yet). NULL: out of memory, and it is closed. */
struct tcp_connection *tcp_connection_new(struct tcp_endpoint *endpoint, int fd, enum tcp_state state);
void tcp_connection_state(struct tcp_connection *connection, enum tcp_state state);
/* Let epoll tell of the socket. */
int tcp_connection_watch(struct tcp_connection *connection);
/* Close the socket. */
void tcp_connection_hang_up(struct tcp_connection *connection);
/* It is over, without a word to the core. */
void tcp_connection_discard(struct tcp_connection *connection);
/* It is over, and so is the peer's way if it was that. */
void tcp_connection_end(struct tcp_connection *connection, int error, bool process_gone, const char *text);
/* The peer broke the protocol. */
void tcp_connection_violation(struct tcp_connection *connection, const char *what);
/* From within a call that cannot end it: progress does. */
void tcp_connection_doom(struct tcp_connection *connection, int error);
/* The stream is at its end, or broken (error positive). */
void tcp_connection_lost(struct tcp_connection *connection, int error);
/* Something may be there to be read, or done. */
static inline void tcp_connection_ready(struct tcp_connection *connection)
{
    if (!ofp_list_linked(&connection->ready))
        ofp_list_append(&connection->endpoint->ready, &connection->ready);
}
/* Flush and hang up; the peer is not the core's any more. */
void tcp_connection_leave(struct tcp_connection *connection);
/* True: there is nothing more to wait for. */
bool tcp_connection_has_left(struct tcp_connection *connection);
void tcp_connections_free_dead(struct tcp_endpoint *endpoint);
void tcp_peer_down(struct ofp_peer *peer);

/* ------------------------------------------------------------------------------------------------------------- meet.c */

/* The socket of a connection that is not up is ready. */
void tcp_meet(struct tcp_connection *connection);
/* In one write: a stock peer that finds half of it gives up. */
int tcp_send_control(struct tcp_connection *connection, enum tcp_control_type type, const void *private_data,
                     size_t length);
int tcp_send_rdm(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm);
/* Whether the peer offers to prove what we want proven. */
bool tcp_can_prove(const struct tcp_control *control);
void tcp_meeting_free(struct tcp_connection *connection);

/* -------------------------------------------------------------------------------------------------------------- ask.c */

int tcp_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* A socket on its way to an address, from ours: 0, or a negative errno. */
int tcp_start_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *fd);
/* End it at the deadline of its meeting. */
void tcp_ask_until_deadline(struct tcp_connection *connection);
/* TCP's handshake may be over. */
void tcp_connected(struct tcp_connection *connection);
void tcp_answered(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data);
/* The connection that we opened, or whose request we accepted, is up. */
void tcp_begin_ours(struct tcp_connection *connection);

/* ----------------------------------------------------------------------------------------------------------- answer.c */

void tcp_requested(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data);
/* It wants a proof, and cannot give one. */
void tcp_refuse_unproven(struct tcp_connection *connection);
/* It may be our peer; `control` and `rdm`: its request, NULL when that was answered before it was proven. */
void tcp_admit(struct tcp_connection *connection, const struct tcp_control *control, const struct tcp_rdm *rdm);

/* -------------------------------------------------------------------------------------------------- msg.c, passive.c */

int tcp_msg_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
int tcp_msg_connect(struct ofp_peer *peer, char *text, size_t text_size);
int tcp_msg_accept(struct ofp_peer *peer, const void *data, size_t length);
int tcp_msg_shutdown(struct ofp_peer *peer);
void tcp_msg_answered(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t *private_data);
void tcp_msg_refuse(struct tcp_connection *connection, const void *data, size_t length);
/* Our request leaves: 0, or a negative errno. */
int tcp_msg_ask(struct tcp_connection *connection);
/* Both sides have the key: now for what the program says. */
void tcp_msg_proven(struct tcp_connection *connection);
/* Whether an endpoint that shuts down has nothing to wait for, and its end if it has not. */
bool tcp_msg_may_quit(const struct tcp_endpoint *endpoint);
void tcp_msg_quit(struct tcp_endpoint *endpoint);
/* The stream is at its end, or broken. */
void tcp_msg_lost(struct tcp_connection *connection, int error);
void tcp_passive_requested(struct tcp_connection *connection, const struct tcp_control *control,
                           const uint8_t *private_data);
extern const struct ofp_passive_ops tcp_passive_ops;

/* ------------------------------------------------------------------------------------------------------------ knock.c */

/* Find out whether somebody listens there still; the connection's socket is closed. `error`: why, positive. */
void tcp_knock(struct tcp_connection *connection, int error);
/* Somebody may have opened. */
void tcp_heard(struct tcp_connection *connection);

/* ------------------------------------------------------------------------------------------------------------ prove.c */

/* The key of the configuration, if there is one. -EACCES: it cannot be used; the log says why. */
int tcp_key_read(struct tcp_domain *domain);
/* Into state TCP_PROVING. False: the connection is over. */
bool tcp_prove_begin(struct tcp_connection *connection);
/* A message of a connection in that state. True: the peer is who it says; false: not yet, or the connection is over. */
bool tcp_prove_message(struct tcp_connection *connection, const struct tcp_header *header);

/* ------------------------------------------------------------------------------------------------------------ queue.c */

enum tcp_item_kind { TCP_ITEM_BYTES, TCP_ITEM_TRANSFER, TCP_ITEM_ACCESSES };

struct tcp_item {
    struct ofp_list node;
    enum tcp_item_kind kind;
    uint32_t begin, end; /* bytes: what is left of them */
    uint64_t offset;     /* the others: bytes that are written */
    union {
        struct ofp_pending *pending;   /* finished when they are */
        struct tcp_accesses *accesses; /* owned */
    };
    char bytes[];
};

/* Append copies. False: out of memory, and the connection is of no use any more. */
bool tcp_queue_bytes(struct tcp_connection *connection, const void *bytes, size_t length);
bool tcp_queue_iov(struct tcp_connection *connection, const struct iovec *iov, uint32_t count, uint64_t offset);
/* Append memory: of an operation, from `offset` on, or of regions here. */
bool tcp_queue_transfer(struct tcp_connection *connection, struct ofp_pending *pending, uint64_t offset);
bool tcp_queue_accesses(struct tcp_connection *connection, struct tcp_accesses *accesses);
/* Write as much as the socket takes. */
void tcp_queue_flush(struct tcp_connection *connection);
/* At the next flush of the endpoint, at the latest with progress. */
static inline void tcp_queue_later(struct tcp_connection *connection)
{
    if (!ofp_list_linked(&connection->dirty))
        ofp_list_append(&connection->endpoint->dirty, &connection->dirty);
}
void tcp_queue_drop(struct tcp_connection *connection);
/* Whether what is queued can leave after its operations have ended. */
bool tcp_queue_is_own(const struct tcp_connection *connection);
/* The peer reads so little of what it asks for that it may not ask for more. */
static inline bool tcp_queue_is_choked(const struct tcp_connection *connection)
{
    return TCP_UNLIKELY(connection->out_bytes > TCP_ANSWERS_MAX || connection->out_answers > TCP_ANSWER_ITEMS_MAX);
}
void tcp_flush(struct ofp_endpoint *base);
void tcp_chunks_free(struct tcp_domain *domain);
/* Copy `count` entries, without their first `offset` bytes, into `to`; returns how many are left. */
uint32_t tcp_iov_skip(struct iovec *to, uint32_t room, const struct iovec *iov, uint32_t count, uint64_t offset);

/* ------------------------------------------------------------------------------------------------------------- send.c */

int tcp_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* Queue a header without payload, to leave with the next flush. */
void tcp_send_header(struct tcp_connection *connection, const struct tcp_header *header);
/* Send a header and an operation's payload; `pending`: it was retained already. As ofp_endpoint_ops.post. */
int tcp_send_payload(struct tcp_connection *connection, const struct tcp_header *header,
                     const struct ofp_transfer *transfer, struct ofp_pending *pending, bool unacked);
/* The kernel has all of it, or the acknowledgement is here. */
void tcp_pending_sent(struct ofp_pending *pending);
bool tcp_pending_acked(struct tcp_connection *connection, int error, int provider_error);

/* ---------------------------------------------------------------------------------------------------------- receive.c */

/* Read what there is, within bounds; returns events. */
int tcp_receive(struct tcp_connection *connection);
/* Hand on what was read before the core had no room. False: it still has none. */
bool tcp_receive_again(struct tcp_connection *connection);
/* The connection ends in the middle of something. */
void tcp_inbound_drop(struct tcp_connection *connection);
/* Begin with a payload: its place, or none. */
void tcp_inbound_receive(struct tcp_connection *connection, const struct tcp_header *header,
                         struct ofp_receive *receive);

/* ---------------------------------------------------------------------------------------------------------- deliver.c */

/*
 * A whole header, with `available` bytes of payload behind it. Returns how many of them were used; what of the payload is
 * missing goes where connection->in says. -EAGAIN: no room, nothing has happened; -ECONNABORTED: the connection is over.
 */
ssize_t tcp_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                    size_t available);
/* The payload of connection->in is complete. */
void tcp_delivered(struct tcp_connection *connection);
/* If a message asked for it. */
void tcp_acknowledge(struct tcp_connection *connection, uint16_t flags);

/* -------------------------------------------------------------------------------------------------------- extension.c */

/* Both sides speak the extension: greet, first of all. */
void tcp_extension_begin(struct tcp_connection *connection);
/* Hello and the like. False: the connection is over. */
bool tcp_extension_deliver(struct tcp_connection *connection, const struct tcp_header *header);
/* What a message of ours costs there: false: it has to be announced. */
bool tcp_credit_take(struct tcp_connection *connection, uint64_t length);
/* A message of theirs came whole. False: they were not granted that much, and the connection is over. */
bool tcp_credit_charge(struct tcp_connection *connection, uint64_t length);
/* Give back what is owed, as soon as there is room. */
void tcp_credit_settle(struct tcp_connection *connection);
int tcp_credit_settle_all(struct tcp_endpoint *endpoint);
void tcp_goodbye(struct tcp_connection *connection, bool ended);
void tcp_send_refusal(struct tcp_connection *connection, enum tcp_refused what, int error);
const char *tcp_error_text(int provider_error);

/* --------------------------------------------------------------------------------------------------------- announce.c */

int tcp_announce(struct tcp_connection *connection, const struct ofp_transfer *transfer, struct tcp_header *header);
int tcp_announced(struct tcp_connection *connection, const struct tcp_header *header);
/* The receiver of a message that we announced is there. False: the connection is over. */
bool tcp_pulled_at(struct tcp_connection *connection, const struct tcp_header *header);
/* It comes. NULL: nobody takes it any more, or (*wrong) it was not asked for. */
struct ofp_receive *tcp_pulled(struct tcp_connection *connection, const struct tcp_header *header, const char **wrong);
void tcp_announced_start(struct ofp_receive *receive);

/* ----------------------------------------------------------------------------------------------------------- atomic.c */

int tcp_atomic_post(struct tcp_connection *connection, const struct ofp_transfer *transfer);
/* Returns as tcp_deliver. */
ssize_t tcp_atomic_requested(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                             size_t available);
void tcp_atomic_execute(struct tcp_connection *connection, struct tcp_operands *operands);

/* What an announced message has in its provider_data. */
enum { TCP_DATA_WAY, TCP_DATA_ID, TCP_DATA_CONNECTION };
enum { TCP_WAY_RENDEZVOUS, TCP_WAY_PULL };

/* ------------------------------------------------------------------------------------------------------- rendezvous.c */

int tcp_rendezvous_send(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                        struct tcp_header *header);
int tcp_rendezvous_requested(struct tcp_connection *connection, const struct tcp_header *header);
void tcp_rendezvous_cleared(struct tcp_connection *connection, uint8_t id);
/* NULL: nobody takes the payload any more, or (*wrong) it was not asked for. */
struct ofp_receive *tcp_rendezvous_data(struct tcp_connection *connection, const struct tcp_header *header,
                                        const char **wrong);
void tcp_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive);

/* -------------------------------------------------------------------------------------------------------------- rma.c */

int tcp_rma_post(struct tcp_connection *connection, const struct ofp_transfer *transfer);
/* The peer reads here. False: the connection is over. */
bool tcp_rma_read(struct tcp_connection *connection, const struct tcp_header *header);
/* It answers a read of ours. */
bool tcp_rma_answer(struct tcp_connection *connection, const struct tcp_header *header);
/* It writes here: connection->in is set. */
bool tcp_rma_write(struct tcp_connection *connection, const struct tcp_header *header);
void tcp_rma_written(struct tcp_connection *connection);
void tcp_rma_have_read(struct tcp_connection *connection);
void tcp_accesses_free(struct tcp_accesses *accesses);
/* All of a request, or nothing. NULL: *error says why. */
struct tcp_accesses *tcp_access_all(struct tcp_connection *connection, const struct tcp_header *header, uint32_t rights,
                                    int *error);

#endif
