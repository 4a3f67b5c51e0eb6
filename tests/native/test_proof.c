/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256, HMAC and HKDF against published values; transcripts, and which proofs of them are valid. */
#include "proof/proof.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void check_hex(const uint8_t *digest, size_t length, const char *expected)
{
    char text[2 * OFPI_SHA256_SIZE + 1];

    for (size_t i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, expected);
}

static void check_digest(const uint8_t digest[OFPI_SHA256_SIZE], const char *expected)
{
    check_hex(digest, OFPI_SHA256_SIZE, expected);
}

/* ------------------------------------------------------------------------------------------------------------ hashes */

/* FIPS 180-4's examples, a million bytes, and every length around a block. */
static void test_hash(void **state)
{
    struct ofpi_sha256 hash;
    uint8_t digest[OFPI_SHA256_SIZE], again[OFPI_SHA256_SIZE], bytes[200];
    static const struct {
        const char *text, *digest;
    } examples[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        ofpi_sha256_init(&hash);
        ofpi_sha256_add(&hash, examples[i].text, strlen(examples[i].text));
        ofpi_sha256_end(&hash, digest);
        check_digest(digest, examples[i].digest);
    }
    ofpi_sha256_init(&hash);
    memset(bytes, 'a', sizeof(bytes));
    for (int i = 0; i < 5000; i++)
        ofpi_sha256_add(&hash, bytes, 200);
    ofpi_sha256_end(&hash, digest);
    check_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    for (size_t length = 0; length < sizeof(bytes); length++) {
        ofpi_sha256_init(&hash);
        ofpi_sha256_add(&hash, bytes, length);
        ofpi_sha256_end(&hash, digest);
        ofpi_sha256_init(&hash);
        for (size_t i = 0; i < length; i++)
            ofpi_sha256_add(&hash, bytes + i, 1);
        ofpi_sha256_end(&hash, again);
        assert_memory_equal(digest, again, sizeof(digest));
    }
}

/* RFC 4231, all seven cases. Case 5 publishes only the first 16 bytes. */
static void test_keyed_hash(void **state)
{
    static const char half_key[] = "Jefe", half[] = "what do ya want for nothing?", cut[] = "Test With Truncation";
    static const char long_text[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char longer_text[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed "
        "before being used by the HMAC algorithm.";
    uint8_t digest[OFPI_SHA256_SIZE], key[131], bytes[50];

    (void)state;
    memset(key, 0x0b, 20);
    ofpi_hmac_compute(key, 20, "Hi There", 8, digest);
    check_digest(digest, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    ofpi_hmac_compute((const uint8_t *)half_key, 4, half, sizeof(half) - 1, digest);
    check_digest(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(bytes, 0xdd, sizeof(bytes));
    ofpi_hmac_compute(key, 20, bytes, 50, digest);
    check_digest(digest, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (uint8_t i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(bytes, 0xcd, sizeof(bytes));
    ofpi_hmac_compute(key, 25, bytes, 50, digest);
    check_digest(digest, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    ofpi_hmac_compute(key, 20, cut, sizeof(cut) - 1, digest);
    check_hex(digest, 16, "a3b6167473100ee06e0c796c2955552b");
    memset(key, 0xaa, sizeof(key));
    ofpi_hmac_compute(key, sizeof(key), long_text, sizeof(long_text) - 1, digest);
    check_digest(digest, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    ofpi_hmac_compute(key, sizeof(key), longer_text, sizeof(longer_text) - 1, digest);
    check_digest(digest, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

/* RFC 5869, case 3: it alone has no salt, and its `info` is empty. Its first 32 bytes are the first block. */
static void test_derived_key(void **state)
{
    uint8_t key[22], derived[OFPI_SHA256_SIZE], another[OFPI_SHA256_SIZE];

    (void)state;
    memset(key, 0x0b, sizeof(key));
    ofpi_hkdf_compute(key, sizeof(key), "", derived);
    check_digest(derived, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
    ofpi_hkdf_compute(key, sizeof(key), "one use", derived);
    ofpi_hkdf_compute(key, sizeof(key), "one usf", another);
    assert_memory_not_equal(derived, another, sizeof(derived));
}

/* ------------------------------------------------------------------------------------------------------------ proofs */

static const uint8_t key[OFPI_SHA256_SIZE] = "a key of thirty-two bytes, or so";

static struct ofpi_transcript transcript_of(const char *text)
{
    struct ofpi_transcript transcript = {0};

    ofpi_transcript_add(&transcript, text, strlen(text));
    return transcript;
}

static bool is_valid(const uint8_t *with, size_t length, const char *text, const uint8_t proof[OFPI_PROOF_SIZE])
{
    struct ofpi_transcript transcript = transcript_of(text);

    return ofpi_proof_is_valid(with, length, &transcript, proof);
}

/* A proof is the HMAC of the fields one after the other, in whichever pieces they come. */
static void test_proof_of_fields(void **state)
{
    struct ofpi_transcript whole = transcript_of("role nonce nonce"), pieces = {0};
    uint8_t proof[OFPI_PROOF_SIZE], expected[OFPI_PROOF_SIZE];

    (void)state;
    ofpi_transcript_add(&pieces, "role ", 5);
    ofpi_transcript_add(&pieces, NULL, 0);
    ofpi_transcript_add(&pieces, "nonce nonce", 11);
    assert_int_equal(pieces.length, whole.length);
    ofpi_proof_compute(key, sizeof(key), &pieces, proof);
    ofpi_hmac_compute(key, sizeof(key), "role nonce nonce", 16, expected);
    assert_memory_equal(proof, expected, sizeof(proof));
    assert_true(ofpi_proof_is_valid(key, sizeof(key), &whole, proof));
}

/* Each bit of the proof counts, at either end and in the middle; so do the key and each byte of the transcript. */
static void test_which_proofs_are_valid(void **state)
{
    struct ofpi_transcript transcript = transcript_of("what is proven");
    uint8_t proof[OFPI_PROOF_SIZE], zeros[OFPI_PROOF_SIZE] = {0}, another[sizeof(key)];

    (void)state;
    ofpi_proof_compute(key, sizeof(key), &transcript, proof);
    assert_true(is_valid(key, sizeof(key), "what is proven", proof));
    for (int bit = 0; bit < 8 * OFPI_PROOF_SIZE; bit++) {
        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(is_valid(key, sizeof(key), "what is proven", proof));
        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (int i = 0; i < OFPI_PROOF_SIZE; i++)
        proof[i] ^= 0x80;
    assert_false(is_valid(key, sizeof(key), "what is proven", proof));
    for (int i = 0; i < OFPI_PROOF_SIZE; i++)
        proof[i] ^= 0x80;
    assert_false(is_valid(key, sizeof(key), "what is proven", zeros));
    assert_false(is_valid(key, sizeof(key), "What is proven", proof));
    assert_false(is_valid(key, sizeof(key), "what is proveN", proof));
    assert_false(is_valid(key, sizeof(key), "what is prove", proof));
    assert_false(is_valid(key, sizeof(key) - 1, "what is proven", proof));
    memcpy(another, key, sizeof(key));
    another[0] ^= 1;
    assert_false(is_valid(another, sizeof(another), "what is proven", proof));
    assert_true(is_valid(key, sizeof(key), "what is proven", proof));
}

static void fill(struct ofpi_transcript *transcript)
{
    static const uint8_t bytes[OFPI_TRANSCRIPT_MAX - 1];

    ofpi_transcript_add(transcript, bytes, sizeof(bytes));
    ofpi_transcript_add(transcript, bytes, 1);
}

/* An overflow is a fault of this side's code: builds with checks abort. */
static int overflow(size_t more)
{
    struct ofpi_transcript transcript = {0};
    static const uint8_t bytes[OFPI_TRANSCRIPT_MAX + 1];
    uint8_t proof[OFPI_PROOF_SIZE], zeros[OFPI_PROOF_SIZE] = {0};

    if (more <= OFPI_TRANSCRIPT_MAX)
        fill(&transcript);
    ofpi_transcript_add(&transcript, bytes, more);
    /* What fits again must not make the rest count. */
    ofpi_transcript_add(&transcript, bytes, 0);
    ofpi_proof_compute(key, sizeof(key), &transcript, proof);
    return ofpi_proof_is_valid(key, sizeof(key), &transcript, proof) ||
           ofpi_proof_is_valid(key, sizeof(key), &transcript, zeros);
}

static void test_a_transcript_that_is_too_long(void **state)
{
    static const size_t lengths[] = {1, OFPI_TRANSCRIPT_MAX, OFPI_TRANSCRIPT_MAX + 1};
    struct ofpi_transcript transcript = {0};
    uint8_t proof[OFPI_PROOF_SIZE];

    (void)state;
    fill(&transcript);
    assert_int_equal(transcript.length, OFPI_TRANSCRIPT_MAX);
    ofpi_proof_compute(key, sizeof(key), &transcript, proof);
    assert_true(ofpi_proof_is_valid(key, sizeof(key), &transcript, proof));
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct rlimit none = {0};

            signal(SIGABRT, SIG_DFL);
            setrlimit(RLIMIT_CORE, &none);
            _exit(overflow(lengths[i]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
#ifdef OFP_CHECKS
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
#else
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_keyed_hash),
        cmocka_unit_test(test_derived_key),
        cmocka_unit_test(test_proof_of_fields),
        cmocka_unit_test(test_which_proofs_are_valid),
        cmocka_unit_test(test_a_transcript_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
