/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a connection whose sides have no version of the extension in common. The acceptor answers the request by a
 * NACK, which says its own versions, so that both sides report the same.
 *
 * With a key the acceptor believes no request before the proof, and the proof of auth.c follows a version that both sides
 * speak. So a refusal has a proof of its own. Its messages, and the bytes that it covers, are the same in every version:
 *
 *     connector    request                     its versions
 *     acceptor     NACK of 32 bytes            its versions, and a nonce
 *     connector    request of 64 bytes         a nonce, then its proof
 *     acceptor     NACK of 32 bytes            its proof. Both sides report the versions, and the connection ends.
 *                  or a NACK of another size   the connector's proof is invalid: only the connector reports, another key
 *
 * The connector's states are REQUESTING, the acceptor's ACCEPTED, whose timers end a peer that says nothing more. No timer
 * is needed otherwise: each message is answered when it arrives. The caller holds the domain's lock.
 */
#include "connection/refusal.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "connection/auth.h"
#include "connection/connection.h"
#include "connection/key.h"
#include "connection/control.h"
#include "connection/race.h"
#include "connection/version.h"
#include "proof/proof.h"
#include "stream/socket.h"

#define NONCE_SIZE (TCP_NONCE_WORDS * 8)
#define ANSWER_SIZE (NONCE_SIZE + OFPI_PROOF_SIZE)

static const char label[] = "ofipy tcp versions";

_Static_assert(ANSWER_SIZE <= TCP_PRIVATE_MAX, "a control message carries it");

/* ------------------------------------------------------------------------------------------------------------- proofs */

static void add_version_range(struct ofpi_transcript *transcript, struct ofpi_versions versions)
{
    uint8_t bytes[2] = {(uint8_t)versions.newest, (uint8_t)versions.oldest};

    ofpi_transcript_add(transcript, bytes, sizeof(bytes));
}

static struct ofpi_transcript build_refusal_transcript(const struct tcp_connection *connection, bool of_connector)
{
    struct ofpi_versions foreign = connection->meeting->foreign;
    struct ofpi_transcript transcript = {0};
    uint8_t role = of_connector ? 'c' : 'a';

    ofpi_transcript_add(&transcript, label, sizeof(label) - 1);
    ofpi_transcript_add(&transcript, &role, sizeof(role));
    tcp_transcript_add_ends(&transcript, connection);
    add_version_range(&transcript, connection->connector ? TCP_OWN_VERSIONS : foreign);
    add_version_range(&transcript, connection->connector ? foreign : TCP_OWN_VERSIONS);
    tcp_transcript_add_encryption(&transcript, connection);
    return transcript;
}

static void compute_own_proof(const struct tcp_connection *connection, uint8_t proof[OFPI_PROOF_SIZE])
{
    struct ofpi_transcript transcript = build_refusal_transcript(connection, connection->connector);

    ofpi_proof_compute(connection->meeting->key, connection->meeting->key_length, &transcript, proof);
}

static bool is_peer_proof_valid(const struct tcp_connection *connection, const uint8_t proof[OFPI_PROOF_SIZE])
{
    struct ofpi_transcript transcript = build_refusal_transcript(connection, !connection->connector);

    return tcp_key_verify(connection, &transcript, proof);
}

/* Whether both sides have a key. Each must prove it then, before the other side believes its versions. */
static bool is_proof_possible(const struct tcp_connection *connection, const struct tcp_control *control)
{
    return connection->meeting->key_length && tcp_control_can_prove(control);
}

/* Draw our nonce, as the bytes to send. False: the connection is over. */
static bool create_nonce(struct tcp_connection *connection, uint8_t bytes[NONCE_SIZE])
{
    struct tcp_meeting *meeting = connection->meeting;

    if (getrandom(meeting->nonce, sizeof(meeting->nonce), 0) != sizeof(meeting->nonce)) {
        tcp_connection_end(connection, EIO, false, "no random numbers");
        return false;
    }
    tcp_words_encode(meeting->nonce, bytes);
    return true;
}

/* Send a message of the refusal, which the peer answers. */
static void send_and_wait(struct tcp_connection *connection, enum tcp_control_type type, const void *data,
                          size_t length)
{
    int error = tcp_control_send(connection, type, data, length);

    connection->meeting->received = 0;
    if (error)
        tcp_connection_end(connection, -error, false, NULL);
}

/* ---------------------------------------------------------------------------------------------------------- connector */

static void report_to_connector(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX];

    ofpi_versions_describe("the tcp extension", TCP_OWN_VERSIONS, connection->meeting->foreign, text, sizeof(text));
    tcp_connection_end(connection, EPROTONOSUPPORT, false, text);
}

/* Prove the key to an acceptor that has sent its nonce. */
static void send_own_proof(struct tcp_connection *connection, const uint8_t nonce[NONCE_SIZE])
{
    struct tcp_meeting *meeting = connection->meeting;
    uint8_t answer[ANSWER_SIZE];

    tcp_words_decode(nonce, meeting->their_nonce);
    tcp_peer_get_reached(connection->peer, &meeting->address);
    if (!create_nonce(connection, answer))
        return;
    compute_own_proof(connection, answer + NONCE_SIZE);
    send_and_wait(connection, TCP_CONNREQ, answer, sizeof(answer));
}

/* ----------------------------------------------------------------------------------------------------------- acceptor */

/* Find the address at which the caller listens, which the proof covers. False: its request has none. */
static bool find_caller_address(struct tcp_connection *connection, const struct tcp_control *control,
                                const uint8_t *private_data)
{
    union tcp_address *address = &connection->meeting->address;
    struct tcp_rdm rdm;

    if (control->type != TCP_CONNREQ)
        return false;
    if (connection->endpoint->base) {
        if (control->private_size < TCP_RDM_SIZE)
            return false;
        tcp_rdm_decode(private_data, &rdm);
        return tcp_connection_get_listening_address(connection, rdm.port, address);
    }
    return tcp_socket_get_peer_address(connection->stream.fd, address);
}

/* Reject the request. `believed`: end the operations that name the caller, too. A listener's caller is no peer. */
static void reject_caller(struct tcp_connection *connection, bool believed, const void *data, size_t length)
{
    const union tcp_address *address = &connection->meeting->address;
    struct ofp_endpoint *base = connection->endpoint->base;
    struct ofp_peer *peer = NULL;
    char text[OFP_TEXT_MAX];

    if (believed && base)
        peer = ofp_peer_by_address(base, address, tcp_address_get_length(address));
    ofpi_versions_describe("the tcp extension", TCP_OWN_VERSIONS, connection->meeting->foreign, text, sizeof(text));
    tcp_refusal_log(connection, text);
    tcp_request_reject(connection, data, length);
    ofpi_versions_fail_caller(peer, text);
}

/* Send our nonce to a caller that can prove the key. */
static void send_nonce(struct tcp_connection *connection)
{
    uint8_t nonce[NONCE_SIZE];

    if (create_nonce(connection, nonce))
        send_and_wait(connection, TCP_NACK, nonce, sizeof(nonce));
}

/* Verify the caller's proof, and answer by our own. */
static void verify_caller(struct tcp_connection *connection, const uint8_t answer[ANSWER_SIZE])
{
    uint8_t proof[OFPI_PROOF_SIZE], reason = TCP_REFUSED_FOR_KEY;

    tcp_words_decode(answer, connection->meeting->their_nonce);
    if (is_peer_proof_valid(connection, answer + NONCE_SIZE)) {
        compute_own_proof(connection, proof);
        reject_caller(connection, true, proof, sizeof(proof));
        return;
    }
    tcp_key_warn(connection, TCP_KEYS_DIFFER);
    tcp_request_reject(connection, &reason, sizeof(reason));
}

/* -------------------------------------------------------------------------------------------------------- both sides */

void tcp_refusal_start(struct tcp_connection *connection, const struct tcp_control *control,
                       const uint8_t private_data[TCP_PRIVATE_MAX])
{
    bool can_prove = is_proof_possible(connection, control);
    bool is_known;

    if (connection->connector) {
        if (can_prove && control->type == TCP_NACK && control->private_size == NONCE_SIZE)
            send_own_proof(connection, private_data);
        else
            report_to_connector(connection);
        return;
    }
    is_known = find_caller_address(connection, control, private_data);
    tcp_extension_accept(connection, control);
    if (is_known && can_prove)
        send_nonce(connection);
    else
        reject_caller(connection, is_known && !connection->meeting->key_length, NULL, 0);
}

void tcp_refusal_advance(struct tcp_connection *connection, const struct tcp_control *control,
                         const uint8_t private_data[TCP_PRIVATE_MAX])
{
    if (!connection->connector) {
        if (control->type == TCP_CONNREQ && control->private_size == ANSWER_SIZE)
            verify_caller(connection, private_data);
        else
            tcp_connection_end_for_violation(connection, "no proof");
    } else if (control->type == TCP_NACK && control->private_size == OFPI_PROOF_SIZE &&
               is_peer_proof_valid(connection, private_data)) {
        report_to_connector(connection);
    } else {
        tcp_connection_end_for_wrong_key(connection);
    }
}
