/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider's files do for each other. */
#ifndef TCP_H
#define TCP_H

#include "objects.h"

/* -------------------------------------------------------------------------------------------------------------- host.c */

/* Between attempts of connections that are not read: this, and longer each time. */
#define TCP_STALL_PAUSE (TCP_MILLISECOND / 4)
int tcp_host_open(struct tcp_endpoint *endpoint, struct ofp_domain *domain, const struct tcp_connection_ops *ops,
                  bool shares_poller);
void tcp_host_close(struct tcp_endpoint *endpoint);

/* --------------------------------------------------------------------------------------------------------- endpoint.c */

int tcp_endpoint_drain(struct ofp_endpoint *base);
void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline);
int tcp_endpoint_name(struct ofp_endpoint *base, void *address, size_t *length);
int tcp_progress(struct ofp_endpoint *base);
bool tcp_arm(struct ofp_endpoint *base);
void tcp_disarm(struct ofp_endpoint *base);

/* ----------------------------------------------------------------------------------------------------------- poller.c */

/* The hot connection is read in every call of progress; the others are looked at after so long, ns. */
#define TCP_LOOK_PAUSE UINT64_C(8000)
/* The endpoint's own, or the one that is shared. */
int tcp_poller_join(struct tcp_endpoint *endpoint, bool shared);
void tcp_poller_leave(struct tcp_endpoint *endpoint);
/* Have the reactor watch it while this endpoint is armed: 0, or a negative errno. */
int tcp_poller_arm(struct tcp_endpoint *endpoint);
void tcp_poller_disarm(struct tcp_endpoint *endpoint);
/* Ask epoll which sockets are ready. Returns how many. */
int tcp_poll(struct tcp_poller *poller);
/* The same for other connections than the hot one, where it is time to. */
int tcp_poller_look(struct tcp_poller *poller);
/* Let epoll tell again of the connection that it was taken out of. */
void tcp_watch_again(struct tcp_poller *poller);
/* The hot connection is read anyway: epoll need not tell of it, after a while. */
void tcp_watch_no_longer(struct tcp_poller *poller, struct tcp_connection *hot);
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
int tcp_congestion_control_read(struct tcp_domain *domain, char *text, size_t text_size);

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
/* Tell this side's operator of somebody who is refused: as a warning once a second at most. */
void tcp_log_refusal(const struct tcp_connection *connection, const char *why);
/* Flush and hang up; the peer is not the core's any more. */
void tcp_connection_leave(struct tcp_connection *connection);
/* True: there is nothing more to wait for. */
bool tcp_connection_has_left(struct tcp_connection *connection);
void tcp_connections_free_dead(struct tcp_endpoint *endpoint);
void tcp_peer_down(struct ofp_peer *peer);

/* ----------------------------------------------------------------------------------------------------------- control.c */

/* In one write: a stock peer that finds half of it gives up. */
int tcp_send_control(struct tcp_connection *connection, enum tcp_control_type type, const void *private_data,
                     size_t length);
int tcp_send_rdm(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm);
/* Say no, and nothing more. */
void tcp_refuse(struct tcp_connection *connection, const void *data, size_t length);
/* Whether the peer offers to prove what we want proven. */
bool tcp_can_prove(const struct tcp_control *control);

/* ------------------------------------------------------------------------------------------------------------- handshake.c */

/* The socket of a connection that is not up is ready. */
void tcp_handshake(struct tcp_connection *connection);
void tcp_meeting_free(struct tcp_connection *connection);

/* -------------------------------------------------------------------------------------------------------------- connect.c */

int tcp_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* The same, when that is decided. */
int tcp_connect_anew(struct ofp_peer *peer);
/* A socket on its way to an address, from ours: 0, or a negative errno. */
int tcp_start_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *fd);
/* For the user, who wanted to connect. */
void tcp_describe_refusal(const struct ofp_peer *peer, int error, char *text, size_t text_size);
/* The peer does not want our request now: again, or never, as the two decide that. */
void tcp_connect_later(struct tcp_connection *connection);
/* End it at the deadline of its meeting. */
void tcp_connect_until_deadline(struct tcp_connection *connection);
/* TCP's handshake may be over. */
void tcp_connected(struct tcp_connection *connection);
/* The connection that we opened, or whose request we accepted, is up. */
void tcp_begin_ours(struct tcp_connection *connection);

/* ----------------------------------------------------------------------------------------------------------- accept.c */

void tcp_requested(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data);
/* It may be our peer; `control` and `rdm`: its request, NULL when that was answered before it was proven. */
void tcp_admit(struct tcp_connection *connection, const struct tcp_control *control, const struct tcp_rdm *rdm);

/* --------------------------------------------------------------------------------------------------------------- rdm.c */

int tcp_rdm_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);

/* -------------------------------------------------------------------------------------------------- msg.c, passive.c */

int tcp_msg_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);
int tcp_msg_connect(struct ofp_peer *peer, char *text, size_t text_size);
int tcp_msg_accept(struct ofp_peer *peer, const void *data, size_t length);
int tcp_msg_shutdown(struct ofp_peer *peer);
/* Whether an endpoint that shuts down has nothing to wait for, and its end if it has not. */
bool tcp_msg_may_quit(const struct tcp_endpoint *endpoint);
void tcp_msg_quit(struct tcp_endpoint *endpoint);
extern const struct ofp_passive_ops tcp_passive_ops;

/* ------------------------------------------------------------------------------------------------------------ probe.c */

/* Find out whether somebody listens there still; the connection's socket is closed. `error`: why, positive. */
void tcp_probe(struct tcp_connection *connection, int error);
/* Somebody may have opened. */
void tcp_heard(struct tcp_connection *connection);

/* ------------------------------------------------------------------------------------------------------------ auth.c */

/* The key of the configuration, if there is one. -EACCES: it cannot be used; the log says why. */
int tcp_key_read(struct tcp_domain *domain, char *text, size_t text_size);
/* Which side has a key and the other has not, or another one. */
enum tcp_key_place { TCP_KEY_IS_HERE, TCP_KEY_IS_THERE, TCP_KEYS_DIFFER };
/* For this side's operator. */
void tcp_key_warning(const struct tcp_connection *connection, enum tcp_key_place place);
/* The peer is refused, or refuses, since only one side has a key: the end of the connection. */
void tcp_key_disagreement(struct tcp_connection *connection, int error);
/* Into state TCP_PROVING. False: the connection is over. */
bool tcp_auth_begin(struct tcp_connection *connection);
/* A message of a connection in that state. True: the peer is who it says; false: not yet, or the connection is over. */
bool tcp_auth_message(struct tcp_connection *connection, const struct tcp_header *header);

/* ----------------------------------------------------------------------------------------------------------- pending.c */

/* The kernel has all of it, or the acknowledgement is here. */
void tcp_pending_sent(struct ofp_pending *pending);
bool tcp_pending_acked(struct tcp_connection *connection, int error, int provider_error);

/* ------------------------------------------------------------------------------------------------------------ access.c */

/* All of a request, or nothing. NULL: *error says why. */
struct tcp_accesses *tcp_access_all(struct tcp_connection *connection, const struct tcp_header *header, uint32_t rights,
                                    int *error);
void tcp_accesses_free(struct tcp_accesses *accesses);
/* Where their bytes from `offset` on are, at most `room` pieces. -1: a region was closed, and its memory is gone with it. */
int tcp_accesses_iov(const struct tcp_accesses *accesses, uint64_t offset, struct iovec *iov, uint32_t room);

/* ----------------------------------------------------------------------------------------------------------- inbound.c */

/* Begin with a payload: its place, or none. */
void tcp_inbound_receive(struct tcp_connection *connection, const struct tcp_header *header,
                         struct ofp_receive *receive);
/* The places of what is still to come, at most `room`. Returns how many bytes have one. */
uint64_t tcp_inbound_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t room, uint32_t *count);
/* The connection ends in the middle of something. */
void tcp_inbound_drop(struct tcp_connection *connection);

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
void tcp_queue_drop(struct tcp_connection *connection);
/* Whether what is queued can leave after its operations have ended. */
bool tcp_queue_is_own(const struct tcp_connection *connection);
/* The peer reads so little of what it asks for that it may not ask for more. */
static inline bool tcp_queue_is_choked(const struct tcp_connection *connection)
{
    return TCP_UNLIKELY(connection->out_bytes > TCP_ANSWERS_MAX || connection->out_answers > TCP_ANSWER_ITEMS_MAX);
}
/* Who hangs up asks for no more, but what it said before counts. */
static inline bool tcp_may_read(const struct tcp_connection *connection)
{
    return !connection->stalled && (!tcp_queue_is_choked(connection) || connection->hangup);
}
void tcp_flush(struct ofp_endpoint *base);
void tcp_chunks_free(struct tcp_domain *domain);

/* ------------------------------------------------------------------------------------------------------------- send.c */

/* Completion levels that end with an acknowledgement. */
#define TCP_LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)
/* Queue a header without payload, to leave with the next flush. */
void tcp_send_header(struct tcp_connection *connection, const struct tcp_header *header);
/* If a message asked for it. */
void tcp_send_ack(struct tcp_connection *connection, uint16_t flags);
void tcp_send_refusal(struct tcp_connection *connection, enum tcp_refused what, int error);
void tcp_send_goodbye(struct tcp_connection *connection, bool ended);
/* Send a header and an operation's payload; `pending`: it was retained already. As ofp_endpoint_ops.post. */
int tcp_send_payload(struct tcp_connection *connection, const struct tcp_header *header,
                     const struct ofp_transfer *transfer, struct ofp_pending *pending, bool unacked);

/* -------------------------------------------------------------------------------------------------------------- post.c */

int tcp_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);

/* ----------------------------------------------------------------------------------------------------------- message.c */

/*
 * Whether remote CQ data came along that are the user's: a sender over libfabric may have named itself there for peers that
 * are not told who it is, which we are. The connection has its peer.
 */
bool tcp_has_data(const struct tcp_connection *connection, const struct tcp_header *header);
/* Hand a message on. Returns as tcp_dispatch. */
ssize_t tcp_message_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available);

/* ---------------------------------------------------------------------------------------------------------- receive.c */

/* Read what there is, within bounds; returns events. */
int tcp_receive(struct tcp_connection *connection);
/* Hand on what was read before the core had no room. False: it still has none. */
bool tcp_receive_again(struct tcp_connection *connection);
/* The peer of a stalled connection has ended it, and nobody receives what it sent. */
bool tcp_stall_is_hopeless(const struct tcp_connection *connection);
/* So the rest of it is dropped. */
void tcp_stall_end(struct tcp_connection *connection);

/* ---------------------------------------------------------------------------------------------------------- dispatch.c */

/*
 * A whole header, with `available` bytes of payload behind it. Returns how many of them were used; what of the payload is
 * missing goes where connection->in says. -EAGAIN: no room, nothing has happened; -ECONNABORTED: the connection is over.
 */
ssize_t tcp_dispatch(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                     size_t available);
/* The payload of connection->in is complete. */
void tcp_dispatched(struct tcp_connection *connection);

/* ------------------------------------------------------------------------------------------------------------ credit.c */

/* Both sides speak the extension: greet, first of all. */
void tcp_greet(struct tcp_connection *connection);
/* Its greeting, or more credit. False: the connection is over. */
bool tcp_greeted(struct tcp_connection *connection, const struct tcp_header *header);
bool tcp_credited(struct tcp_connection *connection, uint64_t credit);
/* What a message of ours costs there: false: it has to be announced. */
bool tcp_credit_take(struct tcp_connection *connection, uint64_t length);
/* A message of theirs came whole. False: they were not granted that much, and the connection is over. */
bool tcp_credit_charge(struct tcp_connection *connection, uint64_t length);
/* Give back what is owed, as soon as there is room. */
void tcp_credit_settle(struct tcp_connection *connection);
int tcp_credit_settle_all(struct tcp_endpoint *endpoint);

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
/* Returns as tcp_dispatch. */
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

#endif
