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
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/credit.h"
#include "connection/race.h"
#include "connection/secure.h"
#include "stream/queue.h"
#include "stream/send.h"

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
    tcp_control_send(connection, TCP_NACK, &reason, sizeof(reason));
    tcp_connection_discard(connection);
}

static void reject_for_encryption(struct tcp_connection *connection, int refusal)
{
    uint8_t reason = (uint8_t)refusal;

    tcp_encryption_warn(connection, refusal);
    tcp_control_send(connection, TCP_NACK, &reason, sizeof(reason));
    tcp_connection_discard(connection);
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

/* Make the accepted connection the peer's. */
static void attach_connection(struct tcp_connection *connection, struct ofp_peer *peer)
{
    OFP_CHECK(connection->state == TCP_ACCEPTED || connection->state == TCP_PROVING);
    OFP_CHECK(ofp_list_linked(&connection->unproven) && connection->endpoint->unproven_count > 0);
    ofp_list_remove(&connection->unproven);
    connection->endpoint->unproven_count--;
    connection->peer = peer;
}

/* ------------------------------------------------------------------------------------------------------------- acts */

/* Accept a request that was not answered before the proof, or confirm the proof. False: the connection is over. */
static bool answer_request(struct tcp_connection *connection, const struct tcp_request *request)
{
    if (!request->rdm) {
        tcp_proof_send(connection);
        return true;
    }
    if (!accept_rdm_request(connection, request->control, request->rdm))
        return false;
    if (connection->extended)
        tcp_hello_send(connection);
    return true;
}

int tcp_request_accept(struct ofp_peer *peer, void *context)
{
    const struct tcp_request *request = context;
    struct tcp_connection *connection = request->connection;

    OFP_CHECK(!tcp_peer_of(peer)->connection);
    if (!answer_request(connection, request))
        return -ECONNRESET;
    attach_connection(connection, peer);
    if (peer->state != OFP_PEER_CONNECTING)
        ofp_peer_connecting(peer);
    tcp_peer_of(peer)->connection = connection;
    tcp_peer_set_reached(peer, &connection->meeting->address);
    return OFPI_MEETING_CONFIRMED;
}

void tcp_request_refuse(struct ofp_peer *peer, void *context)
{
    const struct tcp_request *request = context;

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

/* The endpoint is its own peer. The other end, which this endpoint opened, carries the operations. */
static void accept_own_request(struct ofp_peer *peer, const struct tcp_request *request)
{
    struct tcp_connection *connection = request->connection;

    if (!answer_request(connection, request))
        return;
    attach_connection(connection, peer);
    tcp_peer_of(peer)->inbound = connection;
    tcp_connection_start_messages(connection);
}

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

static bool get_socket_address(int fd, int (*end)(int, struct sockaddr *, socklen_t *), union tcp_address *address)
{
    socklen_t length = sizeof(*address);

    memset(address, 0, sizeof(*address));
    if (fd < 0 || end(fd, &address->any, &length) != 0)
        return false;
    tcp_address_clear_unused(address);
    return true;
}

/* Whether both sockets are ends of one connection: no two connections have the same pair of addresses. */
static bool are_ends_of_one_connection(const struct tcp_connection *theirs, const struct tcp_connection *ours)
{
    union tcp_address from, to, own, other;

    return get_socket_address(theirs->stream.fd, getpeername, &from) &&
           get_socket_address(theirs->stream.fd, getsockname, &to) &&
           get_socket_address(ours->stream.fd, getsockname, &own) &&
           get_socket_address(ours->stream.fd, getpeername, &other) && tcp_address_compare(&from, &own) == 0 &&
           tcp_address_compare(&to, &other) == 0;
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
    struct tcp_request request = {connection, control, rdm};
    int order = compare_peer_to_self(connection);
    struct ofp_peer *peer = order ? find_requesting_peer(connection) : find_own_peer(connection);

    if (!peer)
        tcp_connection_discard(connection);
    else if (!order)
        accept_own_request(peer, &request);
    else
        ofpi_meeting_requested(connection->endpoint->ops->meeting, peer, &request,
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
        reject_for_encryption(connection, refusal);
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
