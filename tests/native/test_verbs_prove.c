/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof of a key between RDM endpoints of verbs, without a device: messages, transcript, the table of challenges. */
#include "core_fixture.h"

#include <arpa/inet.h>

#include "packet/prove.h"

enum { SOURCES = 500 };

static const uint64_t second = UINT64_C(1000000000);
static struct verbs_challenges table;

static union ibv_gid source_of(uint32_t number)
{
    union ibv_gid gid = {.raw = {0xff}};

    memcpy(gid.raw + 12, &number, sizeof(number));
    return gid;
}

static struct verbs_challenge *open_for(uint32_t number, uint64_t now)
{
    union ibv_gid gid = source_of(number);
    struct verbs_challenge *opened = verbs_challenge_open(&table, &gid, now);

    assert_non_null(opened);
    return opened;
}

static bool end_for(uint32_t number, const struct verbs_challenge *opened, uint64_t now)
{
    struct verbs_challenge answered, wanted = *opened;
    union ibv_gid gid = source_of(number);

    return verbs_challenge_end(&table, wanted.number, &gid, now, &answered);
}

static int table_clear(void **state)
{
    (void)state;
    verbs_challenges_init(&table);
    return 0;
}

static uint32_t count_open(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < VERBS_CHALLENGES; i++)
        count += table.sources[i].count;
    return count;
}

/* ------------------------------------------------------------------------------------------------------- challenges */

static void test_a_challenge_ends_with_its_use(void **state)
{
    struct verbs_challenge *opened = open_for(1, second);
    struct verbs_challenge copy = *opened;

    (void)state;
    assert_false(end_for(2, &copy, second));
    assert_true(end_for(1, &copy, second));
    assert_false(end_for(1, &copy, second));
    assert_int_equal(count_open(), 0);
}

static void test_a_challenge_ends_with_its_time(void **state)
{
    struct verbs_challenge early = *open_for(1, second), late = *open_for(1, 2 * second);

    (void)state;
    assert_false(end_for(1, &early, second + VERBS_CHALLENGE_NS));
    assert_true(end_for(1, &late, second + VERBS_CHALLENGE_NS));
    assert_int_equal(count_open(), 0);
}

static void test_challenges_differ(void **state)
{
    struct verbs_challenge one = *open_for(1, second), other = *open_for(1, second);

    (void)state;
    assert_memory_not_equal(one.number, other.number, sizeof(one.number));
    assert_memory_not_equal(one.nonce, other.nonce, sizeof(one.nonce));
}

/* One source that floods displaces only its own challenges. */
static void test_a_flood_of_one_source(void **state)
{
    struct verbs_challenge honest[20];

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        honest[i] = *open_for(100 + i, second);
    for (int i = 0; i < 1000; i++)
        open_for(1, second + 1);
    assert_int_equal(count_open(), 20 + VERBS_CHALLENGES_OF_SOURCE);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(end_for(100 + i, &honest[i], second + 2));
}

/* Some sources fill the table: one with a single challenge loses it to none of them. */
static void test_a_flood_of_some_sources(void **state)
{
    struct verbs_challenge honest = *open_for(100, second);

    (void)state;
    for (uint32_t i = 0; i < 5000; i++) {
        open_for(i % 8, second + 1);
        assert_in_range(count_open(), 1, VERBS_CHALLENGES);
    }
    assert_int_equal(count_open(), VERBS_CHALLENGES);
    assert_true(end_for(100, &honest, second + 2));
    assert_int_equal(table.displaced, 5000 - (VERBS_CHALLENGES - 1));
}

/* More sources than entries: the oldest goes, and nothing is lost of the table. */
static void test_a_flood_of_all_sources(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SOURCES; i++)
        open_for(i, second);
    assert_int_equal(count_open(), VERBS_CHALLENGES);
    open_for(1000, second + VERBS_CHALLENGE_NS);
    assert_int_equal(count_open(), 1);
}

/* ----------------------------------------------------------------------------------------------------------- messages */

static struct verbs_facts example_facts(void)
{
    struct verbs_facts facts = {.caller = {.v4 = {.sin_family = AF_INET, .sin_port = htons(7001)}},
                                .acceptor = {.v4 = {.sin_family = AF_INET, .sin_port = htons(7002)}},
                                .caller_hello_length = OFPI_HELLO_MAX,
                                .acceptor_hello_length = OFPI_HELLO_MAX};

    facts.caller.v4.sin_addr.s_addr = htonl(0xcb007101);
    facts.acceptor.v4.sin_addr.s_addr = htonl(0xcb007102);
    memset(facts.challenge, 1, sizeof(facts.challenge));
    memset(facts.caller_nonce, 2, sizeof(facts.caller_nonce));
    memset(facts.acceptor_nonce, 3, sizeof(facts.acceptor_nonce));
    memset(&facts.caller_gid, 4, sizeof(facts.caller_gid));
    memset(&facts.acceptor_gid, 5, sizeof(facts.acceptor_gid));
    memset(facts.caller_hello, 6, sizeof(facts.caller_hello));
    memset(facts.acceptor_hello, 7, sizeof(facts.acceptor_hello));
    return facts;
}

static void test_requests(void **state)
{
    uint8_t hello[OFPI_HELLO_MAX] = {9}, bytes[VERBS_PROOF_REQUEST_SIZE], proof[OFPI_PROOF_SIZE] = {8};
    struct verbs_facts facts = example_facts();
    struct verbs_path_request request;

    (void)state;
    assert_int_equal(verbs_first_request_encode(bytes, 0x1234, hello, sizeof(hello), false), 42);
    assert_true(verbs_request_decode(bytes, 42, &request));
    assert_false(request.has_key || request.has_proof);
    assert_int_equal(request.port, 0x1234);
    assert_int_equal(request.hello_length, sizeof(hello));
    assert_int_equal(verbs_first_request_encode(bytes, 0x1234, hello, sizeof(hello), true), 43);
    assert_true(verbs_request_decode(bytes, 43, &request));
    assert_true(request.has_key && !request.has_proof);
    assert_int_equal(request.hello_length, sizeof(hello));
    assert_int_equal(verbs_second_request_encode(bytes, 0x1234, &facts, proof), 55);
    assert_true(verbs_request_decode(bytes, 55, &request));
    assert_true(request.has_proof);
    assert_memory_equal(request.challenge, facts.challenge, sizeof(facts.challenge));
    assert_memory_equal(request.nonce, facts.caller_nonce, sizeof(facts.caller_nonce));
    assert_memory_equal(request.proof, proof, sizeof(proof));
    for (size_t length = 0; length <= VERBS_PORT_SIZE; length++)
        assert_false(verbs_request_decode(bytes, length, &request));
}

static void test_answers(void **state)
{
    uint8_t bytes[VERBS_PROVEN_ANSWER_MAX], hello[OFPI_HELLO_MAX] = {9}, proof[OFPI_PROOF_SIZE] = {8}, decoded[32];
    struct verbs_challenge challenge = {.number = {1}, .nonce = {2}};
    struct verbs_facts facts = {0};

    (void)state;
    assert_int_equal(verbs_challenge_encode(bytes, &challenge, hello, sizeof(hello)), 66);
    for (size_t length = 0; length <= 26; length++)
        assert_false(verbs_challenge_decode(bytes, length, &facts));
    assert_true(verbs_challenge_decode(bytes, 66, &facts));
    assert_memory_equal(facts.challenge, challenge.number, sizeof(challenge.number));
    assert_memory_equal(facts.acceptor_nonce, challenge.nonce, sizeof(challenge.nonce));
    assert_memory_equal(facts.acceptor_hello, hello, sizeof(hello));
    bytes[1]++;
    assert_false(verbs_challenge_decode(bytes, 66, &facts));
    assert_int_equal(verbs_answer_encode(bytes, hello, sizeof(hello), proof), 72);
    for (size_t length = 0; length <= 32; length++)
        assert_false(verbs_answer_decode(bytes, length, &facts, decoded));
    assert_false(verbs_answer_decode(bytes, 73, &facts, decoded));
    assert_true(verbs_answer_decode(bytes, 72, &facts, decoded));
    assert_memory_equal(decoded, proof, sizeof(proof));
}

/* ------------------------------------------------------------------------------------------------------------- proofs */

static const uint8_t key[OFPI_SHA256_SIZE] = "0123456789abcdef0123456789abcde";

/* Each byte of what both sides know changes the proof; so do the role and the queue pair. */
static void test_a_proof_covers_everything(void **state)
{
    struct verbs_facts facts = example_facts(), other;
    uint8_t proof[OFPI_PROOF_SIZE], covered[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t *pieces[] = {other.challenge,
                         other.caller_nonce,
                         other.acceptor_nonce,
                         other.caller_gid.raw,
                         other.acceptor_gid.raw,
                         (uint8_t *)&other.caller.v4.sin_port,
                         (uint8_t *)&other.acceptor.v4.sin_addr,
                         other.caller_hello,
                         other.acceptor_hello};

    (void)state;
    verbs_proof_compute(key, &facts, VERBS_CALLER, 17, proof);
    assert_true(verbs_proof_is_valid(key, &facts, VERBS_CALLER, 17, proof));
    assert_false(verbs_proof_is_valid(key, &facts, VERBS_ACCEPTOR, 17, proof));
    assert_false(verbs_proof_is_valid(key, &facts, VERBS_CALLER, 18, proof));
    for (size_t i = 0; i < sizeof(covered); i++) {
        other = facts;
        pieces[i][1] ^= 1;
        assert_false(verbs_proof_is_valid(key, &other, VERBS_CALLER, 17, proof));
    }
    for (size_t i = 0; i < sizeof(proof); i++) {
        proof[i] ^= 128;
        assert_false(verbs_proof_is_valid(key, &facts, VERBS_CALLER, 17, proof));
        proof[i] ^= 128;
    }
}

/* Made by tests/verbs/caller.py, which is written from the page: tests/unit/test_verbs_proof.py computes them again. */
static void test_vectors(void **state)
{
    static const uint8_t expected[2][OFPI_PROOF_SIZE] = {
        {0x78, 0x95, 0x8e, 0x43, 0x69, 0xe9, 0x52, 0xa2, 0xc6, 0x2b, 0x35, 0x8b, 0x74, 0xf0, 0x03, 0xfb,
         0xb1, 0x6d, 0x29, 0xf3, 0x2c, 0x5a, 0x88, 0x68, 0xda, 0x77, 0x71, 0x4d, 0x7d, 0x00, 0x2f, 0x19},
        {0x36, 0x70, 0x5e, 0xc8, 0x9e, 0xfc, 0xf0, 0x72, 0xc7, 0x30, 0xba, 0xc0, 0xb5, 0x9c, 0x5c, 0x6d,
         0x71, 0x5f, 0xfb, 0x6f, 0x83, 0x60, 0xf4, 0x68, 0x89, 0x79, 0xe7, 0xa5, 0x04, 0x98, 0x3b, 0xb0},
    };
    struct verbs_facts facts = example_facts();
    uint8_t derived[OFPI_SHA256_SIZE], proof[OFPI_PROOF_SIZE];

    (void)state;
    ofpi_hkdf_compute((const uint8_t *)"a key file's bytes", 18, "ofipy verbs proof 1", derived);
    verbs_proof_compute(derived, &facts, VERBS_CALLER, 0x123456, proof);
    assert_memory_equal(proof, expected[0], sizeof(proof));
    verbs_proof_compute(derived, &facts, VERBS_ACCEPTOR, 0x123456, proof);
    assert_memory_equal(proof, expected[1], sizeof(proof));
}

#define TEST(test) cmocka_unit_test_setup(test, table_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_challenge_ends_with_its_use),
        TEST(test_a_challenge_ends_with_its_time),
        TEST(test_challenges_differ),
        TEST(test_a_flood_of_one_source),
        TEST(test_a_flood_of_some_sources),
        TEST(test_a_flood_of_all_sources),
        TEST(test_requests),
        TEST(test_answers),
        TEST(test_a_proof_covers_everything),
        TEST(test_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
