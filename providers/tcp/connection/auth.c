/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutual proof of a shared key. Each side sends a nonce in its hello, and then as proof
 *
 *     HMAC-SHA256(key, role | nonce of the connector | nonce of the acceptor | both listening addresses | both identities, if
 *                 sent | version and capability of the extension)
 *
 * The connector proves first. The acceptor's proof also accepts the connection: instead of it the acceptor may send a
 * goodbye,
 * if it prefers its own connection. The proof contains the role, so a reflected proof is invalid.
 * State: PROVING, from tcp_auth_start to the handler `proven`. Nothing that the peer sent counts before that. An
 * unproven peer
 * costs one of TCP_UNPROVEN_MAX connections until a timer ends it. The caller holds the domain's lock.
 */
#include "connection/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address/interface.h"
#include "connection/connection.h"
#include "connection/credit.h"
#include "stream/queue.h"
#include "stream/send.h"
#include "proof/sha256.h"

#define KEY_MIN 16

_Static_assert(TCP_PROOF_SIZE == TCP_SHA256_SIZE, "a proof is one digest");

/* -------------------------------------------------------------------------------------------------------------- keys */

/* O_NONBLOCK: opening a pipe must not wait for its other end. */
static ssize_t read_key_file(const char *path, void *space, size_t size, struct stat *status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = 0;
    ssize_t length = -1;

    if (fd < 0)
        return -errno;
    if (fstat(fd, status) == 0)
        length = read(fd, space, size);
    if (length < 0)
        error = -errno;
    close(fd);
    return error ? error : length;
}

int tcp_key_read(struct tcp_domain *domain, char *text, size_t text_size)
{
    const char *path = tcp_core->param_string("AUTH_KEY_FILE"), *why = NULL;
    struct stat status;
    ssize_t length;

    if (!path || !path[0])
        return 0;
    length = read_key_file(path, domain->key, sizeof(domain->key), &status);
    if (length == -ENOENT)
        why = "the key file is missing; copy the peer's, or make one: ofipy key new";
    else if (length < 0)
        why = strerror((int)-length);
    else if (status.st_mode & (S_IRWXG | S_IRWXO))
        why = "others than its owner may use the key; chmod 600";
    else if (length < KEY_MIN || status.st_size > (off_t)sizeof(domain->key))
        why = "a key of 16 to 1024 bytes is meant";
    if (why) {
        snprintf(text, text_size, "OFIPY_AUTH_KEY_FILE=%s: %s", path, why);
        return length < 0 ? (int)length : -EACCES;
    }
    domain->key_length = (size_t)length;
    return 0;
}

int tcp_key_choose(struct tcp_connection *connection)
{
    const struct tcp_domain *domain = connection->endpoint->domain;
    const struct ofp_endpoint *base = connection->endpoint->base;
    struct tcp_meeting *meeting = connection->meeting;
    union tcp_address theirs = {0};
    socklen_t length = sizeof(theirs);

    if (getpeername(connection->stream.fd, &theirs.any, &length) != 0)
        return -errno;
    tcp_address_clear_unused(&theirs);
    meeting->key = domain->key;
    meeting->key_length = domain->key_length;
    if (!domain->key_length && base && base->local_key && tcp_is_of_this_host(&theirs)) {
        meeting->key = base->local_key;
        meeting->key_length = OFP_KEY_SIZE;
    }
    return 0;
}

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
};

void tcp_key_warn(const struct tcp_connection *connection, enum tcp_key_place place)
{
    tcp_refusal_log(connection, key_texts[place]);
}

enum tcp_key_place tcp_key_find_place(const struct tcp_connection *connection)
{
    if (!connection->meeting->key_length)
        return TCP_KEY_IS_THERE;
    return connection->meeting->key == connection->endpoint->domain->key ? TCP_KEY_IS_HERE : TCP_LOCAL_KEY_IS_HERE;
}

void tcp_connection_end_for_key(struct tcp_connection *connection, int error, enum tcp_key_place place)
{
    tcp_connection_end(connection, error, false, key_texts[place]);
}

void tcp_connection_end_for_wrong_key(struct tcp_connection *connection)
{
    tcp_connection_end(connection, EACCES, false, key_texts[TCP_KEYS_DIFFER]);
}

/* ------------------------------------------------------------------------------------------------------------ proofs */

static uint8_t *encode_bytes(uint8_t *to, const void *bytes, size_t length)
{
    memcpy(to, bytes, length);
    return to + length;
}

static uint8_t *encode_nonce(uint8_t *to, const uint64_t nonce[TCP_NONCE_WORDS])
{
    for (int i = 0; i < TCP_NONCE_WORDS; i++)
        for (int k = 0; k < 8; k++)
            *to++ = (uint8_t)(nonce[i] >> 8 * k);
    return to;
}

static uint8_t *encode_address(uint8_t *to, const union tcp_address *address)
{
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);
    uint16_t port = tcp_address_get_port(address);

    *to++ = (uint8_t)length;
    to = encode_bytes(to, ip, length);
    *to++ = (uint8_t)(port >> 8);
    *to++ = (uint8_t)port;
    return to;
}

/* The proof of one role. Both sides compute both: one to send, one to compare. */
static void compute_proof(const struct tcp_connection *connection, bool of_connector, uint8_t proof[TCP_PROOF_SIZE])
{
    const struct tcp_meeting *meeting = connection->meeting;
    const struct tcp_endpoint *endpoint = connection->endpoint;
    bool connector = connection->connector;
    union tcp_address own;
    uint8_t bytes[256], *end = bytes;

    *end++ = of_connector ? 'c' : 'a';
    end = encode_nonce(end, connector ? meeting->nonce : meeting->their_nonce);
    end = encode_nonce(end, connector ? meeting->their_nonce : meeting->nonce);
    tcp_connection_get_own_address(connection, &own);
    end = encode_address(end, connector ? &own : &meeting->address);
    end = encode_address(end, connector ? &meeting->address : &own);
    if (meeting->identified) {
        end = encode_bytes(end, connector ? endpoint->base->identity : meeting->identity, OFP_IDENTITY_SIZE);
        end = encode_bytes(end, connector ? meeting->identity : endpoint->base->identity, OFP_IDENTITY_SIZE);
    }
    *end++ = TCP_EXTENSION_VERSION;
    *end++ = TCP_CAPABILITY_AUTHENTICATION;
    tcp_hmac_compute(meeting->key, meeting->key_length, bytes, (size_t)(end - bytes), proof);
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
    uint8_t proof[TCP_PROOF_SIZE];

    compute_proof(connection, connection->connector, proof);
    for (int i = 0; i < TCP_PROOF_SIZE; i++)
        header.words[i / 8] |= (uint64_t)proof[i] << 8 * (i % 8);
    tcp_header_send(connection, &header);
    tcp_queue_flush(connection);
}

static bool is_proof_valid(const struct tcp_connection *connection, const struct tcp_header *header)
{
    uint8_t proof[TCP_PROOF_SIZE];
    unsigned difference = 0;

    compute_proof(connection, !connection->connector, proof);
    /* Compare in constant time: the time must not depend on the first difference. */
    for (int i = 0; i < TCP_PROOF_SIZE; i++)
        difference |= proof[i] ^ (uint8_t)(header->words[i / 8] >> 8 * (i % 8));
    return difference == 0;
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
    if (header->op == TCP_GOODBYE && connection->connector && connection->endpoint->ops->deferred) {
        connection->endpoint->ops->deferred(connection);
        return false;
    }
    if (header->op == TCP_PROOF && is_proof_valid(connection, header))
        return true;
    if (!connection->peer)
        tcp_key_warn(connection, TCP_KEYS_DIFFER);
    tcp_connection_end_for_wrong_key(connection);
    return false;
}
