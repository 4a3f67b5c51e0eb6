/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutual proof of a shared key. Each side sends a nonce in its hello, and then as proof
 *
 *     HMAC-SHA256(key, role | nonce of the connector | nonce of the acceptor | both listening addresses | both identities, if
 *                 sent | version of the extension that the connector said | that of the acceptor, if it differs |
 *                 capabilities that both demand | if host-bound, the host | if encrypted, a value exported from the TLS
 *                 connection)
 *
 * The connector proves first. The acceptor's proof also accepts the connection: instead of it the acceptor may send a
 * goodbye, if it prefers its own connection, or a proof of zeros, if that of the connector is wrong. The proof contains
 * the role, so a reflected proof is invalid. Sides without a common version come to refusal.c instead, whose proof begins with a label.
 * State: PROVING, from tcp_auth_start to the handler `proven`. Nothing that the peer sent counts before that. An unproven
 * peer costs one of TCP_UNPROVEN_MAX connections until a timer ends it. The caller holds the domain's lock.
 */
#include "connection/auth.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/credit.h"
#include "connection/key.h"
#include "connection/secure.h"
#include "stream/queue.h"
#include "stream/send.h"
#include "stream/tls.h"

_Static_assert(TCP_PROOF_SIZE == OFPI_PROOF_SIZE, "the op TCP_PROOF carries one proof");
_Static_assert(TCP_PROOF_SIZE == TCP_NONCE_WORDS * 8, "a proof has as many words as a nonce");

/* ----------------------------------------------------------------------------------------------------- disagreements */

/* These texts reach logs and errors, so they say nothing about the contents of keys. */
static const char *const key_texts[] = {
    [TCP_KEY_IS_HERE] =
        ("this side has a key and the peer has none; set its OFIPY_AUTH_KEY_FILE to the same one, which libfabric's own "
         "programs do not have"),
    [TCP_KEY_IS_THERE] = "the peer has a key and this side has none; set OFIPY_AUTH_KEY_FILE to the same one",
    [TCP_LOCAL_KEY_IS_HERE] =
        ("within one host this side proves the user's key, and the peer, opened as tcp or another program, proves none; open "
         "it as link, or set OFIPY_AUTH_KEY_FILE to one file for both"),
    [TCP_LOCAL_KEY_IS_THERE] =
        ("within one host the peer requires a proof of the user's key, and this side, opened as tcp, has none; open it as "
         "link, or set OFIPY_AUTH_KEY_FILE to one file for both"),
    [TCP_KEYS_DIFFER] = "the peer has another key than this side; set OFIPY_AUTH_KEY_FILE to the same one",
    [TCP_HOSTS_DIFFER] =
        ("the peer has another key than this side, or an address of this host leads to another host; set "
         "OFIPY_AUTH_KEY_FILE to the same one, or OFIPY_ENCRYPTION=required on both sides"),
};

void tcp_key_warn(const struct tcp_connection *connection, enum tcp_key_place place)
{
    tcp_refusal_log(connection, key_texts[place]);
}

enum tcp_key_place tcp_key_find_place(const struct tcp_connection *connection)
{
    if (!connection->meeting->key_length)
        return TCP_KEY_IS_THERE;
    return connection->meeting->ring ? TCP_KEY_IS_HERE : TCP_LOCAL_KEY_IS_HERE;
}

void tcp_connection_end_for_key(struct tcp_connection *connection, int error, enum tcp_key_place place)
{
    tcp_connection_end(connection, error, false, key_texts[place]);
}

static enum tcp_key_place find_difference(const struct tcp_connection *connection)
{
    return tcp_encryption_is_host_bound(connection) ? TCP_HOSTS_DIFFER : TCP_KEYS_DIFFER;
}

void tcp_connection_end_for_wrong_key(struct tcp_connection *connection)
{
    if (tcp_connect_retry_key(connection))
        return;
    tcp_connection_end(connection, EACCES, false, key_texts[find_difference(connection)]);
}

/* ------------------------------------------------------------------------------------------------------------ proofs */

static void add_byte(struct ofpi_transcript *transcript, uint8_t byte) { ofpi_transcript_add(transcript, &byte, 1); }

void tcp_words_encode(const uint64_t words[TCP_NONCE_WORDS], uint8_t bytes[TCP_NONCE_WORDS * 8])
{
    for (int i = 0; i < TCP_NONCE_WORDS * 8; i++)
        bytes[i] = (uint8_t)(words[i / 8] >> i % 8 * 8);
}

void tcp_words_decode(const uint8_t bytes[TCP_NONCE_WORDS * 8], uint64_t words[TCP_NONCE_WORDS])
{
    memset(words, 0, TCP_NONCE_WORDS * sizeof(*words));
    for (int i = 0; i < TCP_NONCE_WORDS * 8; i++)
        words[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
}

static void add_nonce(struct ofpi_transcript *transcript, const uint64_t nonce[TCP_NONCE_WORDS])
{
    uint8_t bytes[TCP_NONCE_WORDS * 8];

    tcp_words_encode(nonce, bytes);
    ofpi_transcript_add(transcript, bytes, sizeof(bytes));
}

static void add_address(struct ofpi_transcript *transcript, const union tcp_address *address)
{
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);
    uint16_t port = tcp_address_get_port(address);

    add_byte(transcript, (uint8_t)length);
    ofpi_transcript_add(transcript, ip, length);
    add_byte(transcript, (uint8_t)(port >> 8));
    add_byte(transcript, (uint8_t)port);
}

void tcp_transcript_add_ends(struct ofpi_transcript *transcript, const struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;
    bool connector = connection->connector;
    union tcp_address own;

    add_nonce(transcript, connector ? meeting->nonce : meeting->their_nonce);
    add_nonce(transcript, connector ? meeting->their_nonce : meeting->nonce);
    tcp_connection_get_own_address(connection, &own);
    add_address(transcript, connector ? &own : &meeting->address);
    add_address(transcript, connector ? &meeting->address : &own);
}

/* Members of a job share the key, so one of them could stand between two others with a TLS connection to each. */
void tcp_transcript_add_encryption(struct ofpi_transcript *transcript, const struct tcp_connection *connection)
{
    if (tcp_stream_is_encrypted(&connection->stream))
        ofpi_transcript_add(transcript, tcp_tls_get_export(&connection->stream), TCP_TLS_EXPORT_SIZE);
}

/*
 * The versions of the extension that the sides said in their control messages. Equal versions are one byte, as in the
 * releases that know version 1 only. The agreed version alone would not do: both sides would compute it alike after
 * an attacker has lowered both messages.
 */
static void add_versions(struct ofpi_transcript *transcript, uint8_t of_connector, uint8_t of_acceptor)
{
    add_byte(transcript, of_connector);
    if (of_acceptor != of_connector)
        add_byte(transcript, of_acceptor);
}

/*
 * A connection within the host is plain, and may be one to another host if a forwarder stands between. Both sides have
 * demanded that the proof covers their host, so such a proof is invalid.
 */
static void add_host(struct ofpi_transcript *transcript, uint64_t host)
{
    add_byte(transcript, TCP_CAPABILITY_AUTHENTICATION | TCP_CAPABILITY_HOST);
    for (int i = 0; i < 8; i++)
        add_byte(transcript, (uint8_t)(host >> i * 8));
}

/* Build the bytes that the proof of one role covers. Both sides compute both: one to send, one to compare. */
static struct ofpi_transcript build_transcript(const struct tcp_connection *connection, bool of_connector)
{
    const struct tcp_meeting *meeting = connection->meeting;
    const struct tcp_endpoint *endpoint = connection->endpoint;
    bool connector = connection->connector;
    struct ofpi_transcript transcript = {0};

    add_byte(&transcript, of_connector ? 'c' : 'a');
    tcp_transcript_add_ends(&transcript, connection);
    if (meeting->identified) {
        ofpi_transcript_add(&transcript, connector ? endpoint->base->identity : meeting->identity, OFP_IDENTITY_SIZE);
        ofpi_transcript_add(&transcript, connector ? meeting->identity : endpoint->base->identity, OFP_IDENTITY_SIZE);
    }
    add_versions(&transcript, connector ? TCP_EXTENSION_VERSION : meeting->their_version,
                 connector ? meeting->their_version : TCP_EXTENSION_VERSION);
    if (tcp_encryption_is_host_bound(connection))
        add_host(&transcript, endpoint->domain->host_id);
    else
        add_byte(&transcript, TCP_CAPABILITY_AUTHENTICATION);
    tcp_transcript_add_encryption(&transcript, connection);
    return transcript;
}

bool tcp_auth_start(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;

    if (getrandom(meeting->nonce, sizeof(meeting->nonce), 0) != sizeof(meeting->nonce)) {
        tcp_connection_end(connection, EIO, false, "no random numbers");
        return false;
    }
    meeting->received = 0;
    tcp_connection_set_state(connection, TCP_PROVING);
    tcp_hello_send(connection);
    return true;
}

void tcp_proof_send(struct tcp_connection *connection)
{
    struct tcp_header header = {.op = TCP_PROOF};
    struct ofpi_transcript transcript = build_transcript(connection, connection->connector);
    const struct tcp_meeting *meeting = connection->meeting;
    uint8_t proof[OFPI_PROOF_SIZE];

    ofpi_proof_compute(meeting->key, meeting->key_length, &transcript, proof);
    tcp_words_decode(proof, header.words);
    tcp_header_send(connection, &header);
    tcp_queue_flush(connection);
}

/*
 * Tell the connector that its proof is refused, by a proof that cannot be valid. An end of the connection alone would say
 * no more than that this process has ended.
 */
static void send_refusal(struct tcp_connection *connection)
{
    tcp_header_send(connection, &(struct tcp_header){.op = TCP_PROOF});
    tcp_queue_flush(connection);
}

static bool is_proof_valid(const struct tcp_connection *connection, const struct tcp_header *header)
{
    struct ofpi_transcript transcript = build_transcript(connection, !connection->connector);
    uint8_t proof[OFPI_PROOF_SIZE];

    tcp_words_encode(header->words, proof);
    return tcp_key_verify(connection, &transcript, proof);
}

bool tcp_auth_handle_message(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_meeting *meeting = connection->meeting;

    if (!connection->hello_received) {
        if (header->op != TCP_HELLO || !tcp_hello_received(connection, header)) {
            tcp_connection_end_for_violation(connection, "no greeting");
            return false;
        }
        memcpy(meeting->their_nonce, header->words + 1, sizeof(meeting->their_nonce));
        if (connection->connector)
            tcp_proof_send(connection);
        return false;
    }
    /* The peer prefers its own connection to ours. */
    if (header->op == TCP_GOODBYE && connection->connector && !connection->endpoint->connects) {
        tcp_request_deferred(connection);
        return false;
    }
    if (header->op == TCP_PROOF && is_proof_valid(connection, header))
        return true;
    if (!connection->connector)
        send_refusal(connection);
    else if (tcp_connect_retry_encrypted(connection))
        return false;
    if (!connection->peer)
        tcp_key_warn(connection, find_difference(connection));
    tcp_connection_end_for_wrong_key(connection);
    return false;
}
