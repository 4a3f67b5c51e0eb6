/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory runs out while completions wait to be read: each operation that was accepted is told of, what cannot be told of is refused
 * or waits, and when the completions are read all goes on, still without memory.
 */
#include "object/domain.h"
#include "ofipy/services.h"
#include "request_fixture.h"

enum { COUNT = 500, RING = 16 };

static bool no_memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* Only for larger blocks, as entries and pools are made of: the fake provider's messages are small, and go on. */
static bool fails(size_t size) { return no_memory && size >= 4096; }

void *__wrap_malloc(size_t size) { return fails(size) ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails(count * size) ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return fails(size) ? NULL : __real_realloc(memory, size); }

static struct side a, b;
static char room[COUNT + OFP_MIN_MULTI_RECV]; /* the last message leaves enough for another */

static int open_both(void **state)
{
    char warm = 0;

    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, RING);
    side_open(&b, false, OFP_PROGRESS_MANUAL, RING);
    sides_meet(&a, &b);
    for (int i = 0; i < 2; i++) {
        struct side *from = i ? &a : &b, *to = i ? &b : &a;
        struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 9, &warm, 1, 0);
        struct ofp_operation send = tagged(OFP_TSEND, from->peer, 9, &warm, 1, 0);

        assert_int_equal(ofp_post(to->endpoint, &receive, 1), 1);
        assert_int_equal(ofp_post(from->endpoint, &send, 1), 1);
        next_completion(from, to);
        next_completion(to, from);
    }
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    no_memory = false;
    side_close(&a);
    side_close(&b);
    forget_warnings();
    return 0;
}

static int64_t post_receive(uint64_t context)
{
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, context);

    return ofp_post(a.endpoint, &op, 1);
}

/* One message of b's, as soon as there is room for it. */
static void send_one(uint64_t length)
{
    struct ofp_operation op = tagged(OFP_TSEND, b.peer, 1, room, length, 0);

    op.flags = OFP_INJECT;
    assert_int_equal(ofp_post(b.endpoint, &op, 1), 1);
    ofp_domain_progress(b.domain);
    ofp_domain_progress(a.domain);
}

static void test_every_receive_is_told_of(void **state)
{
    struct ofp_completion row;
    uint64_t sent = 0;

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(post_receive(i), 1);
    no_memory = true;
    for (; sent < COUNT; sent++)
        send_one(0);
    assert_int_equal(post_receive(COUNT), -ENOMEM);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
        assert_int_equal(row.error, 0);
        assert_int_equal(row.context, i);
    }
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    assert_int_equal(post_receive(COUNT), 1);
}

/* Sends that end within their call have no object that could stand for their completion. */
static void test_sends_are_refused_before_they_are_sent(void **state)
{
    struct ofp_completion row;
    uint64_t sent = 0, told = 0, received = 0;
    struct ofp_operation op;

    (void)state;
    no_memory = true;
    for (int i = 0; i < 4 * COUNT; i++) {
        int64_t result;

        op = tagged(OFP_TSEND, b.peer, 1, NULL, 0, sent);
        result = ofp_post(b.endpoint, &op, 1);
        assert_true(result == 1 || result == -EAGAIN || result == -ENOMEM);
        if (result == -ENOMEM)
            break;
        sent += result == 1;
        ofp_domain_progress(b.domain);
        /* The messages themselves are received by the other side all the while. */
        post_receive(0);
        ofp_domain_progress(a.domain);
        while (ofp_cq_read(a.cq, &row, 1) == 1)
            received++;
    }
    assert_true(sent > RING && sent < 4 * COUNT);
    for (; ofp_cq_read(b.cq, &row, 1) == 1; told++)
        assert_int_equal(row.context, told);
    assert_int_equal(told, sent);
    assert_true(received <= sent);
    op = tagged(OFP_TSEND, b.peer, 1, NULL, 0, sent);
    assert_int_equal(ofp_post(b.endpoint, &op, 1), 1);
}

/* Messages for a buffer that takes many wait where they are until there is memory to tell of them. */
static void test_a_buffer_for_many_loses_none(void **state)
{
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, room, sizeof(room), 0);
    uint64_t sent = 0, taken = 0, deadline = ofpi_clock_read() + 20000000000ull;
    ofp_request_t request;

    (void)state;
    op.flags = OFP_MULTI_RECV;
    request = request_start(a.endpoint, &op);
    assert_true(request > 0);
    no_memory = true;
    while (taken < COUNT) {
        struct ofp_completion row;

        assert_true(ofpi_clock_read() < deadline);
        if (sent < COUNT) {
            struct ofp_operation send = tagged(OFP_TSEND, b.peer, 1, room, 1, 0);

            send.flags = OFP_INJECT;
            sent += ofp_post(b.endpoint, &send, 1) == 1;
            ofp_domain_progress(b.domain);
            ofp_domain_progress(a.domain);
            /* Far more than can be kept, before the first is taken. */
            if (sent < COUNT / 2)
                continue;
        }
        row = request_take(request, 0);
        ofp_domain_progress(b.domain);
        if (row.error == -EAGAIN)
            continue;
        assert_int_equal(row.error, 0);
        assert_int_equal(row.length, 1);
        assert_int_equal(row.buffer_offset, taken++);
    }
}

/* A peer's write cannot be refused: what is not told of is counted in one entry, which says so. */
static void test_accesses_of_peers_are_counted(void **state)
{
    struct ofp_completion row;
    uint64_t told = 0, counted = 0;

    (void)state;
    no_memory = true;
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)a.domain), 0);
        ofp_remote_event(a.endpoint, NULL, NULL, OFP_COMPLETED_REMOTE_WRITE | OFP_COMPLETED_REMOTE_CQ_DATA, i, 8);
        ofpi_lock_release(&((struct ofpi_domain *)a.domain)->lock);
    }
    while (ofp_cq_read(a.cq, &row, 1) == 1) {
        if (row.error) {
            assert_int_equal(row.error, ENOBUFS);
            counted += row.length;
        } else {
            assert_int_equal(row.data, told++);
        }
    }
    assert_true(told >= RING && counted > 0);
    assert_int_equal(told + counted, COUNT);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_every_receive_is_told_of),
        WITH(test_sends_are_refused_before_they_are_sent),
        WITH(test_a_buffer_for_many_loses_none),
        WITH(test_accesses_of_peers_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
