/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private data of requests, rejections and answers between RDM endpoints with a key, and the table of challenges. The
 * decoders get any bytes. An acceptor is played as packet/accept.c does: callers from some sources send requests that are
 * valid, almost valid or random, while the clock advances. It accepts only proofs of its key for a challenge that is open,
 * each once.
 */
#include <string.h>

#include "input.h"
#include "packet/prove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWER_MAX = 195, STORED = 8 };

static const uint8_t key[OFPI_SHA256_SIZE] = "the key of the acceptor", other_key[OFPI_SHA256_SIZE] = "another key";
static struct verbs_challenges table;
static uint64_t now;

/* A challenge that a caller has got. */
static struct attempt {
    struct verbs_facts facts;
    union ibv_gid source;
    uint16_t port;
    uint64_t deadline;
    bool open;
} attempts[STORED];
static uint32_t next;

static void check_table(void)
{
    uint32_t open = 0, listed = 0;

    for (uint32_t i = 0; i < VERBS_CHALLENGES; i++) {
        check(table.sources[i].count <= VERBS_CHALLENGES_OF_SOURCE);
        open += table.sources[i].count;
    }
    for (struct ofp_list *node = table.open.next; node != &table.open; node = node->next)
        listed++;
    check(open == listed && open <= VERBS_CHALLENGES);
}

/* An exact copy, so that the sanitizer finds a read behind its end. */
static uint8_t *take_bytes(struct input *input, size_t size, size_t *length)
{
    uint8_t *bytes;

    *length = size < input->size ? size : input->size;
    bytes = malloc(*length ? *length : 1);
    memcpy(bytes, input->data, *length);
    input->data += *length;
    input->size -= *length;
    return bytes;
}

static void decode_anything(struct input *input)
{
    uint8_t proof[OFPI_PROOF_SIZE];
    struct verbs_path_request request;
    struct verbs_facts facts = {0};
    size_t length, size = take(input) % (ANSWER_MAX + 1);
    uint8_t *bytes = take_bytes(input, size, &length);

    if (verbs_request_decode(bytes, length, &request)) {
        check(request.has_proof == (length == VERBS_PROOF_REQUEST_SIZE));
        check(request.has_proof || request.hello_length <= OFPI_HELLO_MAX);
        check(request.has_proof || request.hello + request.hello_length <= bytes + length);
    }
    if (verbs_challenge_decode(bytes, length, &facts))
        check(facts.acceptor_hello_length > 0 && facts.acceptor_hello_length <= OFPI_HELLO_MAX);
    if (verbs_answer_decode(bytes, length, &facts, proof))
        check(facts.acceptor_hello_length > 0 && facts.acceptor_hello_length <= OFPI_HELLO_MAX);
    free(bytes);
}

static union ibv_gid take_source(struct input *input)
{
    return (union ibv_gid){.raw = {0xfe, 0x80, [15] = take(input)}};
}

/* A first request is answered by a challenge, which the caller decodes. */
static void ask(struct input *input)
{
    uint8_t hello[OFPI_HELLO_MAX] = {take(input)}, request[VERBS_FIRST_REQUEST_MAX], answer[VERBS_CHALLENGE_DATA_MAX];
    struct attempt *attempt = &attempts[next++ % STORED];
    struct verbs_path_request decoded;
    struct verbs_challenge *challenge;
    size_t length;

    *attempt = (struct attempt){.source = take_source(input), .port = (uint16_t)(take(input) << 4), .open = true};
    length = verbs_first_request_encode(request, attempt->port, hello, sizeof(hello), true);
    check(verbs_request_decode(request, length, &decoded) && decoded.has_key && !decoded.has_proof);
    check(decoded.port == attempt->port && decoded.hello_length == sizeof(hello));
    challenge = verbs_challenge_open(&table, &attempt->source, now);
    check(challenge != NULL);
    challenge->port = decoded.port;
    challenge->hello_length = (uint8_t)decoded.hello_length;
    memcpy(challenge->hello, decoded.hello, decoded.hello_length);
    attempt->deadline = challenge->deadline;
    length = verbs_challenge_encode(answer, challenge, hello, sizeof(hello));
    check(verbs_challenge_decode(answer, length, &attempt->facts));
    attempt->facts.caller = attempt->facts.acceptor = (union tcp_address){.v4 = {.sin_family = AF_INET}};
    attempt->facts.caller_hello_length = OFPI_HELLO_MAX;
    memcpy(attempt->facts.caller_hello, hello, sizeof(hello));
}

/* Returns whether the acceptor accepts the request, as packet/accept.c decides. */
static bool is_accepted(const struct attempt *attempt, const uint8_t *bytes, size_t length, uint32_t pair_number)
{
    struct verbs_facts facts = attempt->facts;
    struct verbs_path_request request;
    struct verbs_challenge challenge;

    if (!verbs_request_decode(bytes, length, &request) || !request.has_proof ||
        !verbs_challenge_end(&table, request.challenge, &attempt->source, now, &challenge))
        return false;
    memcpy(facts.challenge, challenge.number, sizeof(facts.challenge));
    memcpy(facts.acceptor_nonce, challenge.nonce, sizeof(facts.acceptor_nonce));
    memcpy(facts.caller_nonce, request.nonce, sizeof(facts.caller_nonce));
    memcpy(facts.caller_hello, challenge.hello, challenge.hello_length);
    return request.port == challenge.port &&
           verbs_proof_is_valid(key, &facts, VERBS_CALLER, pair_number, request.proof);
}

/* A second request: `how` says what is wrong with it. */
static void prove(struct input *input)
{
    struct attempt *attempt = &attempts[take(input) % STORED];
    uint8_t proof[OFPI_PROOF_SIZE], bytes[VERBS_PROOF_REQUEST_SIZE], how = take(input), place = 0, bits;
    uint32_t number = 0x100u + take(input);
    bool accepted, honest = how < 128;
    size_t length;

    if (!attempt->port && !attempt->open)
        return;
    memset(attempt->facts.caller_nonce, how, sizeof(attempt->facts.caller_nonce));
    verbs_proof_compute(how == 128 ? other_key : key, &attempt->facts, how == 129 ? VERBS_ACCEPTOR : VERBS_CALLER,
                        number, proof);
    length = verbs_second_request_encode(bytes, attempt->port, &attempt->facts, proof);
    check(length == sizeof(bytes));
    if (how > 130) {
        place = take(input) % sizeof(bytes);
        bits = take(input);
        bytes[place] ^= bits ? bits : 1;
    }
    accepted = is_accepted(attempt, bytes, length, how == 130 ? number + 1 : number);
    check(!accepted || (honest && attempt->open && now < attempt->deadline));
    /* A challenge that is displaced is not open, which the caller does not know. Otherwise an honest proof is accepted. */
    check(accepted || !honest || !attempt->open || now >= attempt->deadline || table.displaced);
    /* A request that names another challenge, or none, does not end this one. */
    if (place < VERBS_PORT_SIZE || place >= VERBS_PORT_SIZE + VERBS_CHALLENGE_SIZE)
        attempt->open = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};

    verbs_challenges_init(&table);
    memset(attempts, 0, sizeof(attempts));
    next = 0;
    now = 1;
    while (input.size) {
        uint8_t what = take(&input);

        if (what % 8 < 2)
            decode_anything(&input);
        else if (what % 8 < 5)
            ask(&input);
        else if (what % 8 < 7)
            prove(&input);
        else
            now += VERBS_CHALLENGE_NS / 16 * take(&input);
        check_table();
    }
    return 0;
}
