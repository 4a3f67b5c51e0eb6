/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The encrypted stream, with a relay between its two ends. The relay passes whole records, and changes, drops, repeats,
 * swaps or cuts one of them: the reader must notice each of these, and must never be given a byte that was not written.
 */
#include "tls_relay.h"

static void test_every_byte_arrives(void **state)
{
    static const size_t pieces[] = {1, 100, 16384, 16385, LONG};
    static const int buffers[] = {0, 4096};
    char *bytes = malloc(LONG), *received = malloc(LONG);
    size_t received_length;

    (void)state;
    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 2; j++) {
            size_t length = pieces[i] == 1 ? 2000 : LONG;
            struct pair pair;

            open_pair(&pair, key, key, buffers[j]);
            assert_int_equal(run_handshake(&pair), 0);
            assert_true(transfer_bytes(&pair, bytes, length, pieces[i], received, &received_length) > 0);
            assert_int_equal(received_length, length);
            assert_memory_equal(received, bytes, length);
            assert_false(pair.streams[0].unsent);
            close_pair(&pair);
        }
    free(bytes);
    free(received);
}

static void test_nothing_is_readable_on_the_way(void **state)
{
    char received[sizeof(pattern)];
    size_t received_length;
    struct pair pair;

    (void)state;
    open_pair(&pair, key, key, 0);
    assert_int_equal(run_handshake(&pair), 0);
    assert_true(transfer_bytes(&pair, pattern, sizeof(pattern), sizeof(pattern), received, &received_length) > 0);
    assert_memory_equal(received, pattern, sizeof(pattern));
    assert_true(pair.captured_length > sizeof(pattern));
    for (size_t size = 8, i = 0; i + size <= sizeof(pattern); i++)
        assert_null(memmem(pair.captured, pair.captured_length, pattern + i, size));
    close_pair(&pair);
}

/* One deed to each record in turn. What was read before the deed is right, and the deed is noticed. */
static void check_deed(enum deed deed, int error, bool can_be_reported_late)
{
    char bytes[8 * 1000], received[sizeof(bytes)];
    size_t received_length;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    for (unsigned number = 0; number < 7; number++) {
        struct pair pair;
        ssize_t result;

        open_pair(&pair, key, key, 0);
        assert_int_equal(run_handshake(&pair), 0);
        pair.deed = deed;
        pair.number = number;
        result = transfer_bytes(&pair, bytes, sizeof(bytes), 1000, received, &received_length);
        assert_int_equal(result, error);
        assert_true(received_length <= 1000 * (number + (can_be_reported_late ? 1 : 0)));
        assert_memory_equal(received, bytes, received_length);
        assert_non_null(tcp_tls_get_failure(&pair.streams[1]));
        /* It stays so. */
        assert_int_equal(read_stream(&pair, 1, received, 1), error);
        close_pair(&pair);
    }
}

static void test_a_changed_record(void **state)
{
    (void)state;
    check_deed(FLIP, -EPROTO, false);
}

/* Each record of the connector's handshake: the first message, and what ends it. */
static void test_a_changed_handshake(void **state)
{
    unsigned number = 0;
    bool changed;

    (void)state;
    do {
        struct pair pair;
        int result;

        open_pair(&pair, key, key, 0);
        pair.armed = true;
        pair.deed = FLIP;
        pair.number = number;
        result = run_handshake(&pair);
        changed = pair.records > number;
        assert_true((result != 0) == changed);
        close_pair(&pair);
        number++;
    } while (changed);
    assert_in_range(number, 3, 10);
}

static void test_a_missing_record(void **state)
{
    (void)state;
    check_deed(DROP, -EPROTO, false);
}

static void test_a_repeated_record(void **state)
{
    (void)state;
    check_deed(REPEAT, -EPROTO, true);
}

static void test_swapped_records(void **state)
{
    (void)state;
    check_deed(SWAP, -EPROTO, false);
}

static void test_a_cut_record(void **state)
{
    (void)state;
    check_deed(CUT, -ECONNRESET, false);
}

static void test_an_end_between_records(void **state)
{
    (void)state;
    check_deed(END, -ECONNRESET, false);
}

/* A short read means an empty socket, so nobody reads again, unless the read says that something is behind its bytes. */
static void test_an_end_behind_bytes_is_announced(void **state)
{
    static const enum deed deeds[] = {FLIP, CUT, END};
    char bytes[1000] = {0}, received[40000];

    (void)state;
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
        struct pair pair;

        open_pair(&pair, key, key, 0);
        assert_int_equal(run_handshake(&pair), 0);
        pair.deed = deeds[i];
        pair.number = 1;
        for (int j = 0; j < 2; j++)
            assert_int_equal(write_stream(&pair, 0, bytes, sizeof(bytes)), sizeof(bytes));
        while (run_relay(&pair))
            ;
        assert_false(pair.streams[1].ended);
        assert_int_equal(read_stream(&pair, 1, received, sizeof(received)), sizeof(bytes));
        assert_true(pair.streams[1].ended);
        assert_int_equal(read_stream(&pair, 1, received, sizeof(received)), deeds[i] == FLIP ? -EPROTO : -ECONNRESET);
        close_pair(&pair);
    }
}

/* Bytes that are encrypted and lost do not count as written: no later call might tell of it. */
static void test_a_failed_write_is_told_at_once(void **state)
{
    char bytes[1000] = {0};
    struct pair pair;

    (void)state;
    open_pair(&pair, key, key, 0);
    assert_int_equal(run_handshake(&pair), 0);
    close(pair.relay[0]);
    pair.relay[0] = -1;
    assert_int_equal(write_stream(&pair, 0, bytes, sizeof(bytes)), -EPIPE);
    close_pair(&pair);
}

static void test_an_orderly_end(void **state)
{
    char received[16];
    struct pair pair;

    (void)state;
    open_pair(&pair, key, key, 0);
    assert_int_equal(run_handshake(&pair), 0);
    assert_int_equal(write_stream(&pair, 0, "last", 4), 4);
    pair.streams[0].ops->close(&pair.streams[0]);
    while (run_relay(&pair))
        ;
    assert_int_equal(read_stream(&pair, 1, received, sizeof(received)), 4);
    assert_true(pair.streams[1].ended);
    assert_int_equal(read_stream(&pair, 1, received, sizeof(received)), 0);
    assert_null(tcp_tls_get_failure(&pair.streams[1]));
    close_pair(&pair);
}

/* Each side uses a key for three records, and answers to nothing. */
static void test_keys_are_changed(void **state)
{
    char *bytes = malloc(LONG), *received = malloc(LONG);
    size_t received_length;
    struct pair pair;

    (void)state;
    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (char)(i >> 3);
    open_pair(&pair, key, key, 4096);
    /* What AES-GCM stands is 2^24.5 records (RFC 8446, 5.5). */
    assert_in_range(pair.contexts[0]->records_per_key, 1, (UINT64_C(1) << 24) - 1);
    pair.contexts[0]->records_per_key = 3;
    assert_int_equal(run_handshake(&pair), 0);
    assert_true(transfer_bytes(&pair, bytes, LONG, 10000, received, &received_length) > 0);
    assert_memory_equal(received, bytes, LONG);
    /* A key update is a record of its own. */
    assert_true(pair.records > LONG / 10000 + LONG / 10000 / 3);
    close_pair(&pair);
    free(bytes);
    free(received);
}

static void test_another_key(void **state)
{
    struct pair pair;
    int error;

    (void)state;
    open_pair(&pair, key, other_key, 0);
    error = run_handshake(&pair);
    assert_true(error == -EPROTO || error == -ECONNRESET);
    assert_true(strstr(tcp_tls_get_failure(&pair.streams[1]), "OFIPY_AUTH_KEY_FILE"));
    close_pair(&pair);
}

/* Noise in place of the connector's first message. */
static void test_noise(void **state)
{
    char noise[64];

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct pair pair;
        ssize_t result;

        open_pair(&pair, key, key, 0);
        assert_int_equal(getrandom(noise, sizeof(noise), 0), sizeof(noise));
        noise[0] = 0x16;
        pass_bytes(&pair, noise, sizeof(noise));
        pair.ends = true;
        assert_true(write_passed_bytes(&pair));
        result = read_stream(&pair, 1, noise, sizeof(noise));
        assert_true(result == -EPROTO || result == -ECONNRESET);
        assert_non_null(tcp_tls_get_failure(&pair.streams[1]));
        close_pair(&pair);
    }
}

static void test_both_ends_export_the_same(void **state)
{
    struct pair pairs[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_pair(&pairs[i], key, key, 0);
        assert_int_equal(run_handshake(&pairs[i]), 0);
        assert_int_equal(tcp_tls_get_cipher(&pairs[i].streams[0]), 0x1301);
        assert_int_equal(tcp_tls_get_cipher(&pairs[i].streams[1]), 0x1301);
        assert_memory_equal(tcp_tls_get_export(&pairs[i].streams[0]), tcp_tls_get_export(&pairs[i].streams[1]),
                            TCP_TLS_EXPORT_SIZE);
    }
    assert_memory_not_equal(tcp_tls_get_export(&pairs[0].streams[0]), tcp_tls_get_export(&pairs[1].streams[0]),
                            TCP_TLS_EXPORT_SIZE);
    for (int i = 0; i < 2; i++)
        close_pair(&pairs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_arrives),
        cmocka_unit_test(test_nothing_is_readable_on_the_way),
        cmocka_unit_test(test_a_changed_record),
        cmocka_unit_test(test_a_changed_handshake),
        cmocka_unit_test(test_a_missing_record),
        cmocka_unit_test(test_a_repeated_record),
        cmocka_unit_test(test_swapped_records),
        cmocka_unit_test(test_a_cut_record),
        cmocka_unit_test(test_an_end_between_records),
        cmocka_unit_test(test_an_end_behind_bytes_is_announced),
        cmocka_unit_test(test_a_failed_write_is_told_at_once),
        cmocka_unit_test(test_an_orderly_end),
        cmocka_unit_test(test_keys_are_changed),
        cmocka_unit_test(test_another_key),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_both_ends_export_the_same),
    };
    char text[256] = "";
    struct tcp_tls_context *context;

    if (tcp_tls_context_create(&context, &by_key, text, sizeof(text)) != 0) {
        fprintf(stderr, "skipped: %s\n", text);
        return 77;
    }
    tcp_tls_context_free(context);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
