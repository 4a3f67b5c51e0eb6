/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints over TCP with each other: every path of a message, with the extension and without it, and how they end. */
#include "core_fixture.h"

#include <stdio.h>

#define LONGEST (8u << 20)
#define SEND_DONE 1
#define RECEIVE_DONE 2

static void fill(uint8_t *bytes, uint64_t length, uint64_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

static void check_filled(const uint8_t *bytes, uint64_t length, uint64_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        assert_int_equal(bytes[i], (uint8_t)(i * 7 + (i >> 8) + seed));
}

struct pair {
    struct side a, b;
    uint8_t *out, *in;
};

static int setup(void **state)
{
    struct pair *pair = malloc(sizeof(*pair));

    if (!pair)
        return -1;
    side_open(&pair->a, false, OFP_PROGRESS_MANUAL, 0);
    side_open(&pair->b, false, OFP_PROGRESS_MANUAL, 0);
    sides_meet(&pair->a, &pair->b);
    pair->out = malloc(LONGEST);
    pair->in = malloc(LONGEST);
    *state = pair;
    return 0;
}

static int setup_stock(void **state)
{
    int result;

    setenv("OFIPY_TCP_EXTENSION", "no", 1);
    result = setup(state);
    unsetenv("OFIPY_TCP_EXTENSION");
    return result;
}

static int setup_small(void **state)
{
    int result;

    setenv("OFIPY_UNEXPECTED_SIZE", "100000", 1);
    result = setup(state);
    unsetenv("OFIPY_UNEXPECTED_SIZE");
    return result;
}

static int setup_small_stock(void **state)
{
    int result;

    setenv("OFIPY_UNEXPECTED_SIZE", "100000", 1);
    result = setup_stock(state);
    unsetenv("OFIPY_UNEXPECTED_SIZE");
    return result;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    side_close(&pair->a);
    side_close(&pair->b);
    free(pair->out);
    free(pair->in);
    free(pair);
    return 0;
}

static void post(struct side *side, struct ofp_operation op) { assert_int_equal(ofp_post(side->endpoint, &op, 1), 1); }

static void progress(struct pair *pair, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        ofp_domain_progress(pair->a.domain);
        ofp_domain_progress(pair->b.domain);
    }
}

/* The completions of both sides, until each context was seen. */
static struct ofp_completion finished(struct pair *pair, struct side *side, uint64_t context)
{
    struct ofp_completion row = next_completion(side, side == &pair->a ? &pair->b : &pair->a);

    assert_int_equal(row.context, context);
    return row;
}

static void move(struct pair *pair, uint64_t length, uint64_t flags, bool expected)
{
    struct ofp_operation send = tagged(OFP_TSEND, pair->a.peer, length, pair->out, length, SEND_DONE);
    struct ofp_operation receive = tagged(OFP_TRECV, pair->b.peer, length, pair->in, length, RECEIVE_DONE);
    struct ofp_completion row;

    send.flags = flags;
    fill(pair->out, length, length);
    memset(pair->in, 0, length);
    if (expected)
        post(&pair->b, receive);
    post(&pair->a, send);
    progress(pair, 20);
    if (!expected)
        post(&pair->b, receive);
    row = finished(pair, &pair->b, RECEIVE_DONE);
    assert_int_equal(row.error, 0);
    assert_int_equal(row.length, length);
    assert_int_equal(row.source, pair->b.peer);
    check_filled(pair->in, length, length);
    assert_int_equal(finished(pair, &pair->a, SEND_DONE).error, 0);
}

static void test_messages(void **state)
{
    static const uint64_t lengths[] = {0, 1, 8, 64, 65, 4096, 4097, 16384, 32768, 70000, 1 << 20, LONGEST};
    static const uint64_t levels[] = {0, OFP_TRANSMIT_COMPLETE, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (unsigned level = 0; level < 4; level++) {
            move(*state, lengths[i], levels[level], true);
            move(*state, lengths[i], levels[level], false);
        }
}

/* Both ask for a connection before either is answered. */
static void test_both_connect_at_once(void **state)
{
    struct pair *pair = *state;
    uint8_t bytes[2] = {1, 2}, room[2] = {0};

    post(&pair->a, tagged(OFP_TSEND, pair->a.peer, 1, &bytes[0], 1, SEND_DONE));
    post(&pair->b, tagged(OFP_TSEND, pair->b.peer, 1, &bytes[1], 1, SEND_DONE));
    post(&pair->a, tagged(OFP_TRECV, pair->a.peer, 1, &room[0], 1, RECEIVE_DONE));
    post(&pair->b, tagged(OFP_TRECV, pair->b.peer, 1, &room[1], 1, RECEIVE_DONE));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(next_completion(&pair->a, &pair->b).error, 0);
        assert_int_equal(next_completion(&pair->b, &pair->a).error, 0);
    }
    assert_int_equal(room[0], 2);
    assert_int_equal(room[1], 1);
}

/* More than the bound, in the wrong order: what is asked for last is there all the same. */
static void test_beyond_the_bound(void **state)
{
    struct pair *pair = *state;
    struct ofp_endpoint_statistics statistics;
    uint8_t last = 7, room = 0;

    fill(pair->out, 60000, 1);
    for (uint64_t i = 0; i < 20; i++)
        post(&pair->a, tagged(OFP_TSEND, pair->a.peer, i, pair->out, 60000, SEND_DONE));
    post(&pair->a, tagged(OFP_TSEND, pair->a.peer, 99, &last, 1, SEND_DONE));
    progress(pair, 200);
    post(&pair->b, tagged(OFP_TRECV, pair->b.peer, 99, &room, 1, RECEIVE_DONE));
    finished(pair, &pair->b, RECEIVE_DONE);
    assert_int_equal(room, 7);
    assert_int_equal(ofp_endpoint_statistics(pair->b.endpoint, &statistics), 0);
    assert_true(statistics.unexpected_bytes < 400000);
    for (uint64_t i = 20; i-- > 0;) {
        post(&pair->b, tagged(OFP_TRECV, pair->b.peer, i, pair->in, 60000, RECEIVE_DONE));
        assert_int_equal(finished(pair, &pair->b, RECEIVE_DONE).error, 0);
        check_filled(pair->in, 60000, 1);
    }
    for (uint64_t i = 0; i < 21; i++)
        assert_int_equal(finished(pair, &pair->a, SEND_DONE).error, 0);
}

/*
 * B owes credit that it cannot grant, since it has too many unexpected messages. It receives some of them, and then another
 * message: the same progress grants for this one, and looks after those that wait.
 */
static void test_space_comes_back_before_the_next_message(void **state)
{
    struct pair *pair = *state;
    struct ofp_endpoint_statistics statistics;

    for (uint64_t i = 0; i < 100; i++) {
        post(&pair->a, tagged(OFP_TSEND, pair->a.peer, i, pair->out, 1000, SEND_DONE));
        progress(pair, 3);
    }
    assert_int_equal(ofp_endpoint_statistics(pair->b.endpoint, &statistics), 0);
    assert_true(statistics.unexpected_bytes >= 100000 && !statistics.announced_messages);
    for (uint64_t i = 0; i < 50; i++)
        post(&pair->b, tagged(OFP_TRECV, pair->b.peer, i, pair->in, 1000, RECEIVE_DONE));
    post(&pair->a, tagged(OFP_TSEND, pair->a.peer, 100, pair->out, 1000, SEND_DONE));
    progress(pair, 3);
    for (uint64_t i = 50; i <= 100; i++)
        post(&pair->b, tagged(OFP_TRECV, pair->b.peer, i, pair->in, 1000, RECEIVE_DONE));
    for (uint64_t i = 0; i <= 100; i++) {
        assert_int_equal(finished(pair, &pair->b, RECEIVE_DONE).error, 0);
        assert_int_equal(finished(pair, &pair->a, SEND_DONE).error, 0);
    }
}

/* Without the extension the connection stands still, and goes on where it stopped. */
static void test_standing_still(void **state)
{
    struct pair *pair = *state;
    struct ofp_endpoint_statistics statistics;

    fill(pair->out, 60000, 1);
    for (uint64_t i = 0; i < 20; i++)
        post(&pair->a, tagged(OFP_TSEND, pair->a.peer, i, pair->out, 60000, SEND_DONE));
    progress(pair, 200);
    assert_int_equal(ofp_endpoint_statistics(pair->b.endpoint, &statistics), 0);
    assert_in_range(statistics.unexpected_bytes, 60000, 100000);
    for (uint64_t i = 0; i < 20; i++) {
        post(&pair->b, tagged(OFP_TRECV, pair->b.peer, i, pair->in, 60000, RECEIVE_DONE));
        assert_int_equal(finished(pair, &pair->b, RECEIVE_DONE).error, 0);
        check_filled(pair->in, 60000, 1);
    }
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(finished(pair, &pair->a, SEND_DONE).error, 0);
}

static void test_remote_memory(void **state)
{
    struct pair *pair = *state;
    struct ofp_region_attr attr = {
        .base = pair->in, .length = LONGEST, .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};
    struct ofp_region_handle region;
    struct ofp_operation op = tagged(OFP_WRITE, pair->a.peer, 0, pair->out, LONGEST - 5, 1);
    uint8_t *back = malloc(LONGEST);

    assert_int_equal(ofp_region_register(pair->b.domain, &attr, &region), 0);
    fill(pair->out, LONGEST, 3);
    op.remote_offset = region.remote_base + 5;
    op.remote_key = region.key;
    op.flags = OFP_DELIVERY_COMPLETE;
    post(&pair->a, op);
    assert_int_equal(finished(pair, &pair->a, 1).error, 0);
    check_filled(pair->in + 5, LONGEST - 5, 3);
    op.op = OFP_READ;
    op.flags = 0;
    op.offset = (uint64_t)(uintptr_t)back;
    post(&pair->a, op);
    assert_int_equal(finished(pair, &pair->a, 1).error, 0);
    check_filled(back, LONGEST - 5, 3);
    free(back);
    assert_int_equal(ofp_region_close(pair->b.domain, region.id), 0);
}

/* Everything that was under way ends, and the next message finds its way again. */
static void test_the_other_side_closes_and_comes_back(void **state)
{
    struct pair *pair = *state;
    char service[16], address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    struct ofp_endpoint_attr attr = {.service = service};
    char text[OFP_TEXT_MAX];
    struct ofp_operation send = tagged(OFP_TSEND, pair->a.peer, 2, pair->out, 1 << 20, SEND_DONE);

    move(pair, 10, 0, true);
    send.flags = OFP_MATCH_COMPLETE;
    post(&pair->a, send);
    progress(pair, 20);
    assert_int_equal(ofp_endpoint_address(pair->b.endpoint, address, &length), 0);
    assert_int_equal(ofp_endpoint_close(pair->b.endpoint, 1000000000), 0);
    assert_int_not_equal(finished(pair, &pair->a, SEND_DONE).error, 0);
    snprintf(service, sizeof(service), "%u", (unsigned)((uint8_t)address[2] << 8 | (uint8_t)address[3]));
    attr.tx_cq = attr.rx_cq = pair->b.cq;
    attr.av = pair->b.av;
    assert_int_equal(ofp_endpoint_open(pair->b.domain, &attr, &pair->b.endpoint, text, sizeof(text)), 0);
    move(pair, 10, 0, true);
}

static void *drive(void *argument)
{
    struct side *side = argument;

    for (uint64_t i = 0; i < 300; i++) {
        uint8_t out[100] = {0}, in[100];
        struct ofp_completion rows[2];
        uint64_t count = 0;
        bool expired;

        post(side, tagged(OFP_TRECV, side->peer, i, in, sizeof(in), RECEIVE_DONE));
        post(side, tagged(OFP_TSEND, side->peer, i, out, sizeof(out), SEND_DONE));
        while (count < 2) {
            int64_t got = ofp_cq_wait(side->cq, rows, 2 - count, 1, 5000000000, &expired);

            assert_true(got > 0);
            count += (uint64_t)got;
        }
    }
    return NULL;
}

/* Two domains with helper threads, each driven by a thread of its own. */
static void test_threads(void **state)
{
    struct side sides[2];
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        side_open(&sides[i], false, OFP_PROGRESS_AUTO, 0);
    sides_meet(&sides[0], &sides[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drive, &sides[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        side_close(&sides[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
        {"test_messages_of_stock_peers", test_messages, setup_stock, teardown, NULL},
        cmocka_unit_test_setup_teardown(test_both_connect_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_beyond_the_bound, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_space_comes_back_before_the_next_message, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_standing_still, setup_small_stock, teardown),
        cmocka_unit_test_setup_teardown(test_remote_memory, setup, teardown),
        {"test_remote_memory_of_stock_peers", test_remote_memory, setup_stock, teardown, NULL},
        cmocka_unit_test_setup_teardown(test_the_other_side_closes_and_comes_back, setup, teardown),
        {"test_a_stock_side_closes_and_comes_back", test_the_other_side_closes_and_comes_back, setup_stock, teardown,
         NULL},
        cmocka_unit_test(test_threads),
    };

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
