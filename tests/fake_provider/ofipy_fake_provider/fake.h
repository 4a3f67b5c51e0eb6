/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake provider's own types.
 *
 * A mailbox belongs to an endpoint and outlives it as long as somebody refers to it. One mutex, the exchange's, guards
 * the table of mailboxes and every field of a mailbox except those marked constant. It is the innermost lock: the core
 * is never called with it held, because endpoints of several domains, each with its own lock, meet here.
 *
 * A packet has one owner at a time: the target's inbox; then the target's endpoint, which keeps it announced, streaming or
 * unexpected; then, if its sender waits for that, the sender's `returned` list: a packet is its own acknowledgement, and
 * one that announces is its own question for the payload.
 */
#ifndef FAKE_H
#define FAKE_H

#include "ofipy/services.h"

#define FAKE_SERVICE_SIZE 56

struct fake_address {
    uint32_t magic;
    uint32_t process;                /* process id: endpoints of other processes are out of reach */
    char service[FAKE_SERVICE_SIZE]; /* zero-terminated, the rest zero */
};

enum mailbox_kind {
    MAILBOX_RDM,
    MAILBOX_CONNECTED, /* of an endpoint of type MSG: nobody finds it by its address */
    MAILBOX_BOUND,     /* of a listener before `listen` */
    MAILBOX_LISTENER
};

struct mailbox {
    struct ofp_list node; /* in the table while open */
    enum mailbox_kind kind;
    struct fake_address address; /* constant */
    uint64_t number;             /* constant; never used again in this process: the incarnation */
    bool pulls;                  /* constant; its endpoint asks for the payload of what is announced */
    int doorbell;                /* constant; an eventfd in the domain's reactor, valid while open */
    uint32_t references;
    uint32_t inbox_count;
    bool open;
    uint64_t departure;    /* its number among those of the process; 0: open */
    bool armed;            /* its domain may sleep: ring at the next packet */
    bool rung;             /* the doorbell is readable */
    struct ofp_list inbox; /* packets for this endpoint, in the order sent */
    bool full;             /* its core keeps no more payload: announce */
    struct ofp_list
        returned; /* own packets that came back, and payload that was asked for: nothing keeps it from being taken */
};

/*
 * What connections say, and FAKE_LOST of type RDM, whose sender has lost the peer that gets it, beside enum ofp_operation_code. Such a packet has FAKE_PRIVATE_DATA bytes of room. A knock comes
 * back as its own answer, from the endpoint that accepts, or from nobody and with an error.
 */
enum packet_control { FAKE_KNOCK = 0x100, FAKE_ANSWER, FAKE_GOODBYE, FAKE_LOST };
#define FAKE_PRIVATE_DATA 256

enum packet_stage {
    PACKET_WHOLE,     /* the payload is in it, or there is nothing more to ask for */
    PACKET_ANNOUNCED, /* it has no payload */
    PACKET_PULL,      /* one that was announced, on its way back to ask */
    PACKET_PAYLOAD,   /* the answer to that */
};

struct packet {
    struct ofp_list node;
    struct mailbox *source; /* referenced; NULL for a refusal */
    uint64_t target_number; /* of the mailbox it was sent to */
    uint64_t id;            /* names it while it is announced; never 0 */
    uint64_t pending_id;    /* the sender's operation that waits for its return; 0: nobody waits */
    int error;              /* what that operation ends with, */
    int provider_error;     /* and the target's reason */
    uint16_t operation;     /* enum ofp_operation_code or packet_control */
    uint8_t atomic_op, datatype;
    uint8_t channel; /* enum ofp_channel */
    uint8_t stage;   /* enum packet_stage */
    bool has_data;
    bool only_delivery; /* its sender waits until the target has it, no matter whether a receive has matched it */
    uint64_t tag, data, length;
    uint64_t receive_id; /* streaming, PACKET_PULL and PACKET_PAYLOAD: the target's receive */
    uint64_t moved;      /* streaming: bytes */
    /* RMA and atomics. `payload` holds what is written, or room for what is read; comparing atomics: both operands. */
    uint32_t remote_count;
    struct ofp_remote_segment remote[OFP_SEGMENT_LIMIT];
    char payload[];
};

/* Private parts of the core's objects, guarded by the domain's lock like those. */
struct fake_domain {
    uint64_t eager_size; /* bytes; longer messages are announced */
};

struct fake_endpoint {
    struct mailbox *mailbox; /* NULL once closed */
    struct ofp_watch doorbell;
    uint64_t departures_seen;
    struct packet *knock;        /* type MSG: of the request it was opened from, until accepted; owned */
    struct ofp_peer *connection; /* type MSG: the one peer while it is connecting or up */
    uint64_t streaming;          /* packets in the `streams` of its peers */
    struct ofp_list replies;     /* packets on their way back, until `flush` */
    struct ofp_timer pause;      /* offload.c: runs while the inbox rests */
    bool paused;
    bool stalled;                  /* the core has no room for the first packet of the inbox */
    struct ofp_list peers;         /* of struct fake_peer: those that are up */
    struct ofp_list unexpected;    /* offload.c: packets that no receive has matched */
    struct ofp_pending **receives; /* offload.c: posted receives, oldest first */
    uint32_t receive_count, receive_capacity;
};

struct fake_peer {
    struct ofp_list node; /* in fake_endpoint.peers */
    struct ofp_peer *peer;
    struct mailbox *target;    /* referenced; NULL while the peer is not up */
    struct ofp_list announced; /* packets from it whose payload nobody has asked for */
    struct ofp_list streams;   /* packets from it whose payload is on its way into a receive */
    uint64_t waiting;          /* operations to it that wait for their packet's return */
    bool leaving;              /* says goodbye when none of them is left */
    bool told;                 /* it has lost us, and need not hear that we lose it */
};

struct fake_passive {
    struct ofp_passive *passive;
    struct mailbox *mailbox;
    struct ofp_watch doorbell;
    uint64_t departures_seen;
};

extern const struct ofp_core *fake_core;

/* fake.c */
int fake_address_make(const char *service, struct fake_address *address, char *text, size_t text_size);

/* mailbox.c. Each takes the lock itself; packets change owner as their names say. */
int mailbox_open(enum mailbox_kind kind, bool pulls, const char *service, int doorbell, struct mailbox **mailbox,
                 uint64_t *departures, char *text, size_t text_size);
/* Drops its packets and its owner's reference; knocks are refused. */
void mailbox_close(struct mailbox *mailbox);
/* A new reference, or NULL. */
struct mailbox *mailbox_find(const struct fake_address *address, enum mailbox_kind kind);
void mailbox_listen(struct mailbox *mailbox); /* from now on it is found */
struct mailbox *mailbox_hold(struct mailbox *mailbox);
void mailbox_release(struct mailbox *mailbox);
bool mailbox_has_room(struct mailbox *mailbox);
bool mailbox_is_open(struct mailbox *mailbox);
/* Whether it was closed, and its departure is one of the first so many: those behind them may have sent something meanwhile. */
bool mailbox_has_departed(struct mailbox *mailbox, uint64_t departures);
void mailbox_put(struct mailbox *mailbox, struct packet *packet);
void mailbox_knock(struct mailbox *listener, struct packet *packet); /* put, or refused if it was closed meanwhile */
void mailbox_put_answer(struct mailbox *mailbox, struct packet *packet); /* to what is returned */
/* Senders are to announce, or no longer. */
void mailbox_set_full(struct mailbox *mailbox, bool full);
bool mailbox_is_full(struct mailbox *mailbox);
void mailbox_put_back(struct mailbox *mailbox, struct packet *packet); /* to the front */
struct packet *mailbox_take(struct mailbox *mailbox);                  /* NULL: none */
struct packet *mailbox_take_returned(struct mailbox *mailbox);
/*
 * The end of a round: silence the doorbell if nothing is left that could be done. True when there is nothing to take;
 * *departures: number of mailboxes closed so far in the process.
 */
bool mailbox_settle(struct mailbox *mailbox, bool stalled, uint64_t *departures);
void mailbox_silence(struct mailbox *mailbox);
/* The sleep handshake: false when there is something new; otherwise the next packet or departure rings the doorbell. */
bool mailbox_arm(struct mailbox *mailbox, uint64_t departures_seen, bool stalled);
void mailbox_disarm(struct mailbox *mailbox);
void mailboxes_forget(void); /* in a forked child */

struct packet *packet_new(struct mailbox *source, struct mailbox *target, const struct ofp_transfer *transfer,
                          bool with_payload);
/* The target is done with it: back to the sender if that waits, else freed. */
void packet_finish(struct packet *packet, int error);
void packets_finish(struct ofp_list *packets); /* all of them, with the errors that they have */
void packet_free(struct packet *packet);
/* A copy of a message that nobody waits for any more. NULL: out of memory. */
struct packet *packet_copy(const struct packet *packet);
struct packet *packet_control_new(struct mailbox *source, enum packet_control what, const void *data, size_t length);
/* A knock goes back to who sent it; `acceptor` NULL: refused. */
void packet_answer(struct packet *packet, struct mailbox *acceptor, const void *data, size_t length);

/* endpoint.c: what both kinds of endpoint share. */
int fake_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size);
void fake_close(struct ofp_endpoint *endpoint, uint64_t deadline);
int fake_name(struct ofp_endpoint *endpoint, void *address, size_t *length);
int fake_connect(struct ofp_peer *peer, char *text, size_t text_size);
void fake_peer_down(struct ofp_peer *peer);
int fake_send(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* `deliver` answers 0 when it has taken the packet; anything else stalls the inbox until the next call. */
typedef int fake_deliver_fn(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet);
int fake_progress(struct ofp_endpoint *endpoint, fake_deliver_fn *deliver);
/* The end of a packet, as packet_finish, by the next `flush`: one look at the exchange for all that a call has ended. */
void fake_reply(struct ofp_endpoint *endpoint, struct packet *packet, int error);
void fake_flush(struct ofp_endpoint *endpoint);
bool fake_arm(struct ofp_endpoint *endpoint);
void fake_disarm(struct ofp_endpoint *endpoint);
/* The message in a packet; `peer` may be NULL. */
struct ofp_message fake_message(const struct packet *packet, struct ofp_peer *peer);

static inline const struct fake_domain *fake_domain_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->domain->private;
}
static inline bool fake_is_connected(const struct ofp_endpoint *endpoint)
{
    return endpoint->info->ep_types == OFP_EP_MSG;
}
/* The peer is reachable. Takes over the reference to its mailbox. */
void fake_meet(struct ofp_peer *peer, struct mailbox *target);
/* The other side has lost the connection. */
void fake_lost_by(struct ofp_peer *peer);
/* The peer that sent a packet, if the core knows it. */
struct ofp_peer *fake_sender(struct ofp_endpoint *endpoint, const struct packet *packet);

/* connection.c: endpoints of type MSG. */
int fake_knock(struct ofp_peer *peer, char *text, size_t text_size);
int fake_accept(struct ofp_peer *peer, const void *data, size_t length);
int fake_shutdown(struct ofp_peer *peer);
void fake_leave_if_done(struct ofp_peer *peer);
/* Takes the packet over. */
void fake_control_arrived(struct ofp_endpoint *endpoint, struct packet *packet);
extern const struct ofp_passive_ops fake_passive_ops;

/* remote.c: RMA and atomics. A request is its own answer too. */
static inline bool packet_is_control(const struct packet *packet) { return packet->operation >= FAKE_KNOCK; }
static inline bool packet_is_remote(const struct packet *packet)
{
    return ofp_operation_is(packet->operation, OFP_REMOTE);
}
void fake_remote_request(struct packet *packet, const struct ofp_transfer *transfer);
void fake_remote_serve(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet);
void fake_remote_answered(const struct packet *packet, const struct ofp_transfer *transfer);

/* payload.c */
/* Beyond the bound -ENOBUFS, as message_begin. */
int fake_stream_begin(struct ofp_endpoint *endpoint, const struct ofp_message *message, struct packet *packet);
/* A piece of each stream. Returns how many there were. */
int fake_streams_work(struct ofp_endpoint *endpoint);
/* At the target: ask for the payload of what was announced. */
void fake_pull(struct ofp_endpoint *endpoint, const struct ofp_receive *receive, struct packet *packet);
/* At the sender: answer with the payload, or with the error that this returns. Takes the packet over; `pending` may be NULL. */
int fake_pulled(struct fake_peer *to, const struct ofp_pending *pending, struct packet *pull);
/* At the target: the answer. Takes the packet over. */
void fake_payload_arrived(struct ofp_endpoint *endpoint, struct packet *packet);

extern const struct ofp_endpoint_ops fake_matched_ops; /* matched.c */
extern const struct ofp_endpoint_ops fake_offload_ops; /* offload.c */

#endif
