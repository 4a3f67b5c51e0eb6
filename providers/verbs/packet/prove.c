/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/prove.h"

#include <arpa/inet.h>
#include <string.h>

#include "ofipy/check.h"

static const char label[] = "ofipy verbs 1";

/* --------------------------------------------------------------------------------------------------------- messages */

static uint8_t *encode_bytes(uint8_t *to, const void *bytes, size_t length)
{
    memcpy(to, bytes, length);
    return to + length;
}

/* In network order. */
static uint8_t *encode_port(uint8_t *to, uint16_t port)
{
    *to++ = (uint8_t)(port >> 8);
    *to++ = (uint8_t)port;
    return to;
}

size_t verbs_first_request_encode(uint8_t bytes[VERBS_FIRST_REQUEST_MAX], uint16_t port, const uint8_t *hello,
                                  size_t length, bool has_key)
{
    uint8_t *end = encode_bytes(encode_port(bytes, port), hello, length);

    OFP_CHECK(length <= OFPI_HELLO_MAX && (!has_key || length == OFPI_HELLO_MAX));
    if (has_key)
        *end++ = VERBS_PROOF_VERSION;
    return (size_t)(end - bytes);
}

size_t verbs_second_request_encode(uint8_t bytes[VERBS_PROOF_REQUEST_SIZE], uint16_t port,
                                   const struct verbs_facts *facts, const uint8_t proof[OFPI_PROOF_SIZE])
{
    uint8_t *end = encode_port(bytes, port);

    end = encode_bytes(end, facts->challenge, sizeof(facts->challenge));
    end = encode_bytes(end, facts->caller_nonce, sizeof(facts->caller_nonce));
    end = encode_bytes(end, proof, OFPI_PROOF_SIZE);
    return (size_t)(end - bytes);
}

size_t verbs_challenge_encode(uint8_t bytes[VERBS_CHALLENGE_DATA_MAX], const struct verbs_challenge *challenge,
                              const uint8_t *hello, size_t length)
{
    uint8_t *end = bytes;

    OFP_CHECK(length <= OFPI_HELLO_MAX);
    *end++ = VERBS_REJECT_CHALLENGE;
    *end++ = VERBS_PROOF_VERSION;
    end = encode_bytes(end, challenge->number, sizeof(challenge->number));
    end = encode_bytes(end, challenge->nonce, sizeof(challenge->nonce));
    end = encode_bytes(end, hello, length);
    return (size_t)(end - bytes);
}

size_t verbs_answer_encode(uint8_t bytes[VERBS_PROVEN_ANSWER_MAX], const uint8_t *hello, size_t length,
                           const uint8_t proof[OFPI_PROOF_SIZE])
{
    OFP_CHECK(length <= OFPI_HELLO_MAX);
    return (size_t)(encode_bytes(encode_bytes(bytes, hello, length), proof, OFPI_PROOF_SIZE) - bytes);
}

bool verbs_request_decode(const uint8_t *bytes, size_t length, struct verbs_path_request *request)
{
    const uint8_t *behind = bytes + VERBS_PORT_SIZE;

    if (length <= VERBS_PORT_SIZE)
        return false;
    *request = (struct verbs_path_request){.port = (uint16_t)(bytes[0] << 8 | bytes[1])};
    if (length == VERBS_PROOF_REQUEST_SIZE) {
        request->has_proof = true;
        request->challenge = behind;
        request->nonce = behind + VERBS_CHALLENGE_SIZE;
        request->proof = request->nonce + VERBS_CALLER_NONCE_SIZE;
        return true;
    }
    request->hello = behind;
    request->hello_length = length - VERBS_PORT_SIZE;
    /* Bytes behind a hello are for later versions; the first of them states the version of the proof. */
    if (request->hello_length > OFPI_HELLO_MAX) {
        request->has_key = behind[OFPI_HELLO_MAX] >= VERBS_PROOF_VERSION;
        request->hello_length = OFPI_HELLO_MAX;
    }
    return true;
}

bool verbs_challenge_decode(const uint8_t *bytes, size_t length, struct verbs_facts *facts)
{
    const uint8_t *number = bytes + 2, *nonce = number + VERBS_CHALLENGE_SIZE;
    const uint8_t *hello = nonce + VERBS_ACCEPTOR_NONCE_SIZE;
    const size_t least = 2 + VERBS_CHALLENGE_SIZE + VERBS_ACCEPTOR_NONCE_SIZE + 1;

    if (length < least || length > VERBS_CHALLENGE_DATA_MAX || bytes[0] != VERBS_REJECT_CHALLENGE ||
        bytes[1] != VERBS_PROOF_VERSION)
        return false;
    memcpy(facts->challenge, number, sizeof(facts->challenge));
    memcpy(facts->acceptor_nonce, nonce, sizeof(facts->acceptor_nonce));
    facts->acceptor_hello_length = (uint8_t)(length - (size_t)(hello - bytes));
    memcpy(facts->acceptor_hello, hello, facts->acceptor_hello_length);
    return true;
}

bool verbs_answer_decode(const uint8_t *bytes, size_t length, struct verbs_facts *facts, uint8_t proof[OFPI_PROOF_SIZE])
{
    if (length <= OFPI_PROOF_SIZE || length > VERBS_PROVEN_ANSWER_MAX)
        return false;
    facts->acceptor_hello_length = (uint8_t)(length - OFPI_PROOF_SIZE);
    memcpy(facts->acceptor_hello, bytes, facts->acceptor_hello_length);
    memcpy(proof, bytes + facts->acceptor_hello_length, OFPI_PROOF_SIZE);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ proofs */

/* The scope of an IPv6 address is left out: each host numbers its interfaces by itself. */
static void add_address(struct ofpi_transcript *transcript, const union tcp_address *address)
{
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);
    uint8_t size = (uint8_t)length, port[VERBS_PORT_SIZE];

    encode_port(port, tcp_address_get_port(address));
    ofpi_transcript_add(transcript, &size, 1);
    ofpi_transcript_add(transcript, ip, length);
    ofpi_transcript_add(transcript, port, sizeof(port));
}

static void add_hello(struct ofpi_transcript *transcript, const uint8_t *hello, uint8_t length)
{
    ofpi_transcript_add(transcript, &length, 1);
    ofpi_transcript_add(transcript, hello, length);
}

/* The hellos contain the identities of both endpoints. */
static void build_transcript(struct ofpi_transcript *transcript, const struct verbs_facts *facts, enum verbs_role role,
                             uint32_t pair_number)
{
    uint32_t number = htonl(pair_number);
    uint8_t of_role = (uint8_t)role;

    transcript->length = 0;
    ofpi_transcript_add(transcript, label, sizeof(label) - 1);
    ofpi_transcript_add(transcript, &of_role, 1);
    ofpi_transcript_add(transcript, facts->challenge, sizeof(facts->challenge));
    ofpi_transcript_add(transcript, facts->caller_nonce, sizeof(facts->caller_nonce));
    ofpi_transcript_add(transcript, facts->acceptor_nonce, sizeof(facts->acceptor_nonce));
    ofpi_transcript_add(transcript, &facts->caller_gid, sizeof(facts->caller_gid));
    ofpi_transcript_add(transcript, &facts->acceptor_gid, sizeof(facts->acceptor_gid));
    add_address(transcript, &facts->caller);
    add_address(transcript, &facts->acceptor);
    add_hello(transcript, facts->caller_hello, facts->caller_hello_length);
    add_hello(transcript, facts->acceptor_hello, facts->acceptor_hello_length);
    ofpi_transcript_add(transcript, &number, sizeof(number));
}

void verbs_proof_compute(const uint8_t key[OFPI_SHA256_SIZE], const struct verbs_facts *facts, enum verbs_role role,
                         uint32_t pair_number, uint8_t proof[OFPI_PROOF_SIZE])
{
    struct ofpi_transcript transcript;

    build_transcript(&transcript, facts, role, pair_number);
    ofpi_proof_compute(key, OFPI_SHA256_SIZE, &transcript, proof);
}

bool verbs_proof_is_valid(const uint8_t key[OFPI_SHA256_SIZE], const struct verbs_facts *facts, enum verbs_role role,
                          uint32_t pair_number, const uint8_t proof[OFPI_PROOF_SIZE])
{
    struct ofpi_transcript transcript;

    build_transcript(&transcript, facts, role, pair_number);
    return ofpi_proof_is_valid(key, OFPI_SHA256_SIZE, &transcript, proof);
}

/* ------------------------------------------------------------------------------------------------------------- texts */

const char *verbs_key_find_text(enum verbs_rejection rejection)
{
    switch (rejection) {
    case VERBS_REJECT_KEY_HERE:
        return "the peer has a key and this side has none; set OFIPY_AUTH_KEY_FILE to the same one";
    case VERBS_REJECT_KEY_THERE:
        return "this side has a key and the peer has none; set its OFIPY_AUTH_KEY_FILE to the same one";
    default:
        return "the peer has another key than this side; set OFIPY_AUTH_KEY_FILE to the same one";
    }
}
