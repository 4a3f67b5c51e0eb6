/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accepting side of RDM connection setup: read the peer's request, decide which connection stays, answer.
 *
 * States: ACCEPTED until a request arrives. If both sides support identities, the first request is answered with an
 * empty CONNRESP, and the second request has the identity. With a key, the request is answered and PROVING follows: the
 * peer is looked up only after the proof. Then UP.
 * Two requests may cross. The endpoint with the larger identity (or address) keeps its request; both sides come to the
 * same result. The manager of native/meet decides.
 * handshake.c (requests) and rdm.c (proofs) call this file, with the domain's lock held.
 */
#include "connection/accept.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/auth.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/credit.h"
#include "connection/probe.h"
#include "connection/race.h"
#include "connection/secure.h"
#include "stream/queue.h"
#include "stream/send.h"
#include "stream/socket.h"

static void reject_rdm_request(struct tcp_connection *connection, const struct tcp_rdm *rdm)
{
    tcp_rdm_send(connection, TCP_NACK, rdm);
    tcp_connection_discard(connection);
}

static void reject_for_key(struct tcp_connection *connection)
{
    enum tcp_key_place place = tcp_key_find_place(connection);
    /*
     * No other NACK to an RDM endpoint has one byte. The receiver finds out from its own configuration which side has a
     * key.
     */
    uint8_t reason = place == TCP_LOCAL_KEY_IS_HERE ? TCP_REFUSED_LOCALLY : TCP_REFUSED_FOR_KEY;

    tcp_key_warn(connection, place);
    tcp_request_reject(connection, &reason, sizeof(reason));
}

/* Answer the request. False: the connection is over. */
static bool accept_rdm_request(struct tcp_connection *connection, const struct tcp_control *control,
                               const struct tcp_rdm *rdm)
{
    struct tcp_rdm answer = {
        .features = rdm->features & TCP_RDM_CONNECTS_ONLY, .port = rdm->port, .pid = (uint32_t)getpid()};

    /* No rendezvous between byte orders: libfabric would send a length in the wrong order. */
    if (rdm->version && !control->swapped)
        answer.version = TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD;
    tcp_extension_accept(connection, control);
    connection->swapped = control->swapped;
    connection->can_rendezvous = answer.version;
    if (tcp_rdm_send(connection, TCP_CONNRESP, &answer) == 0)
        return true;
    tcp_connection_discard(connection);
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- acts */

/* A request, as the manager passes it on. */
struct request {
    struct tcp_connection *connection;
    const struct tcp_control *control; /* these two: NULL if the request was answered before the proof */
    const struct tcp_rdm *rdm;
};

static int accept_request(struct ofp_peer *peer, void *context)
{
    const struct request *request = context;
    struct tcp_connection *connection = request->connection;
    struct tcp_peer *self = tcp_peer_of(peer);

    if (request->rdm && !accept_rdm_request(connection, request->control, request->rdm))
        return -ECONNRESET;
    if (!request->rdm)
        tcp_proof_send(connection);
    else if (connection->extended)
        tcp_hello_send(connection);
    tcp_connection_mark_known(connection);
    connection->peer = peer;
    /* The endpoint is its own peer. The other end, which this endpoint opened, carries the operations. */
    if (self->connection) {
        self->inbound = connection;
        tcp_connection_start_messages(connection);
        return 0;
    }
    if (peer->state != OFP_PEER_CONNECTING)
        ofp_peer_connecting(peer);
    self->connection = connection;
    tcp_peer_set_reached(peer, &connection->meeting->address);
    return OFPI_MEETING_CONFIRMED;
}

static void put_request_off(struct ofp_peer *peer, void *context)
{
    const struct request *request = context;

    (void)peer;
    if (request->rdm) {
        reject_rdm_request(request->connection, request->rdm);
        return;
    }
    /* This request has been answered for the proof. A goodbye in place of our proof rejects it. */
    tcp_goodbye_send(request->connection, false);
    tcp_queue_flush(request->connection);
    tcp_connection_discard(request->connection);
}

static struct ofpi_meeting *find_meeting(const struct ofp_peer *peer) { return &tcp_peer_of(peer)->met; }

static void close_connection(struct ofp_peer *peer)
{
    if (tcp_peer_of(peer)->connection)
        tcp_connection_discard(tcp_peer_of(peer)->connection);
}

static void report_loss(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    close_connection(peer);
    ofpi_meeting_report_loss(peer, end);
}

/* Nobody can be asked at a peer that only connects. The own endpoint is known. */
static bool probe_peer(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    const struct tcp_peer *self = tcp_peer_of(peer);

    return !self->inbound && !peer->connects_only && !self->connection->endpoint->closing &&
           tcp_probe_start(self->connection, end->error);
}

/* Without `drain`: reading ends where the connection does, so no fact UNREAD is ever reported. */
const struct ofpi_meeting_ops tcp_meeting_ops = {
    .find = find_meeting,
    .dial = tcp_peer_start_connect,
    .accept = accept_request,
    .refuse = put_request_off,
    .close = close_connection,
    .lose = report_loss,
    .probe = probe_peer,
    .use = tcp_peer_report_up,
};

/* ---------------------------------------------------------------------------------------------------------- deciding */

/* Order of the peer's identity (or address) and ours, as memcmp. 0: the peer is this endpoint itself. */
static int compare_peer_to_self(const struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;
    union tcp_address own;

    if (meeting->identified)
        return memcmp(meeting->identity, connection->endpoint->base->identity, OFP_IDENTITY_SIZE);
    tcp_connection_get_own_address(connection, &own);
    return tcp_address_compare(&meeting->address, &own);
}

/*
 * Whether a request of ours crosses this one and wins. Before the proof the peer must not be looked up, so this searches
 * the connections.
 */
static bool is_own_request_preferred(const struct tcp_connection *connection)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;
    const union tcp_address *theirs = &connection->meeting->address;

    if (!ofpi_meet_winner_compute(OFPI_MEET_LARGER_WINS, compare_peer_to_self(connection)))
        return false;
    for (const struct ofp_list *node = endpoint->connections.next; node != &endpoint->connections; node = node->next) {
        const struct tcp_connection *ours = OFP_CONTAINER_OF(node, const struct tcp_connection, node);

        if (ours->connector && ours->peer && (ours->state == TCP_CONNECTING || ours->state == TCP_REQUESTING) &&
            ours->peer->address_length == tcp_address_get_length(theirs) &&
            memcmp(ours->peer->address, theirs, ours->peer->address_length) == 0)
            return true;
    }
    return false;
}

/* Whether both sockets are ends of one connection: no two connections have the same pair of addresses. */
static bool are_ends_of_one_connection(const struct tcp_connection *theirs, const struct tcp_connection *ours)
{
    union tcp_address from, to, own, other;

    return tcp_socket_get_peer_address(theirs->stream.fd, &from) && tcp_socket_get_address(theirs->stream.fd, &to) &&
           tcp_socket_get_address(ours->stream.fd, &own) && tcp_socket_get_peer_address(ours->stream.fd, &other) &&
           tcp_address_compare(&from, &own) == 0 && tcp_address_compare(&to, &other) == 0;
}

/*
 * The peer that stands for this endpoint itself. Every peer that we connect to learns our identity, so a request with
 * our identity proves nothing. The request must have arrived on the other end of a connection that we opened. NULL: it
 * did not, and the sender lies.
 */
static struct ofp_peer *find_own_peer(const struct tcp_connection *connection)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;

    for (const struct ofp_list *node = endpoint->connections.next; node != &endpoint->connections; node = node->next) {
        const struct tcp_connection *ours = OFP_CONTAINER_OF(node, const struct tcp_connection, node);

        if (ours->connector && ours->peer && are_ends_of_one_connection(connection, ours))
            return ours->peer;
    }
    tcp_refusal_log(connection, "it says that it is this endpoint itself");
    return NULL;
}

/* The peer that sent the request. NULL: the core does not accept it. */
static struct ofp_peer *find_requesting_peer(const struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;
    const union tcp_address *address = &meeting->address;
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    struct ofp_peer *peer;

    if (meeting->identified)
        return ofp_peer_by_identity(endpoint, meeting->identity, meeting->connects_only, address,
                                    tcp_address_get_length(address));
    peer = ofp_peer_by_address(endpoint, address, tcp_address_get_length(address));
    if (peer)
        peer->connects_only = meeting->connects_only;
    return peer;
}

static unsigned collect_request_facts(const struct tcp_connection *old, uint64_t incarnation, int order)
{
    unsigned facts = ofpi_meet_winner_compute(OFPI_MEET_LARGER_WINS, order);

    facts |= old && old->incarnation == incarnation ? 0 : OFPI_MEET_RENEWED;
    facts |= old && old->connector ? OFPI_MEET_OPENED : 0;
    return facts;
}

void tcp_request_serve(struct tcp_connection *connection, const struct tcp_control *control, const struct tcp_rdm *rdm)
{
    struct request request = {connection, control, rdm};
    int order = compare_peer_to_self(connection);
    struct ofp_peer *peer = order ? find_requesting_peer(connection) : find_own_peer(connection);

    if (!peer)
        tcp_connection_discard(connection);
    else if (!order)
        accept_request(peer, &request);
    else
        ofpi_meeting_requested(&tcp_meeting_ops, peer, &request,
                               collect_request_facts(tcp_peer_of(peer)->connection, connection->incarnation, order));
}

/* Decode the request, and store its contents in the meeting. False: it was invalid, and the connection is over. */
static bool decode_request(struct tcp_connection *connection, const struct tcp_control *control,
                           const uint8_t *private_data, struct tcp_rdm *rdm)
{
    struct tcp_meeting *meeting = connection->meeting;

    if (control->type == TCP_CONNREQ && control->private_size == TCP_RXM_SIZE && !meeting->identified) {
        tcp_refusal_log(connection, "it speaks ofi_rxm" TCP_RXM_REMEDY);
        tcp_connection_discard(connection);
        return false;
    }
    if (control->type != TCP_CONNREQ || control->private_size != tcp_rdm_compute_size(connection, TCP_CONNREQ)) {
        tcp_connection_end_for_violation(connection, "not the request of a reliable datagram endpoint");
        return false;
    }
    tcp_rdm_decode(private_data, rdm);
    connection->incarnation = rdm->pid;
    if (meeting->identified)
        tcp_identity_store(connection, private_data + TCP_RDM_SIZE);
    meeting->connects_only = rdm->features & TCP_RDM_CONNECTS_ONLY;
    if (tcp_connection_get_listening_address(connection, rdm->port, &meeting->address))
        return true;
    tcp_connection_discard(connection);
    return false;
}

/* Request the identity with an empty answer. The peer sends a second request, which replaces the first. */
static void request_identity(struct tcp_connection *connection, const struct tcp_control *control)
{
    tcp_extension_accept(connection, control);
    connection->meeting->identified = true;
    connection->meeting->received = 0;
    if (tcp_control_send(connection, TCP_CONNRESP, NULL, 0) != 0)
        tcp_connection_discard(connection);
}

void tcp_request_arrived(struct tcp_connection *connection, const struct tcp_control *control,
                         const uint8_t *private_data)
{
    bool proves = connection->meeting->key_length;
    int refusal = tcp_encryption_find_refusal(connection, control);
    struct tcp_rdm rdm;

    if (!decode_request(connection, control, private_data, &rdm))
        return;
    if (refusal != TCP_NOT_REFUSED)
        tcp_request_reject_unencrypted(connection, refusal);
    else if (proves != tcp_control_can_prove(control))
        reject_for_key(connection);
    else if (!connection->meeting->identified && tcp_control_can_identify(connection, control))
        request_identity(connection, control);
    else if (proves && is_own_request_preferred(connection))
        reject_rdm_request(connection, &rdm);
    else if (!proves)
        tcp_request_serve(connection, control, &rdm);
    else if (accept_rdm_request(connection, control, &rdm))
        tcp_auth_start(connection);
}
