/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on the internal channel between two endpoints of the provider that the test is linked with. Only the core posts
 * them, so its own calls are used.
 */
#ifndef INTERNAL_CHANNEL_H
#define INTERNAL_CHANNEL_H

#include "core_fixture.h"
#include "object/endpoint.h"
#include "object/owner.h"
#include "operation/post.h"
#include "progress/progress.h"

struct internal_end {
    struct ofpi_owner owner;
    uint32_t count;
    struct ofp_completion last;
};

static inline void internal_finish(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                   struct ofp_completion *completion)
{
    struct internal_end *end = OFP_CONTAINER_OF(owner, struct internal_end, owner);

    (void)endpoint;
    (void)op_flags;
    end->count++;
    end->last = *completion;
}

static inline int internal_post(struct side *side, struct ofp_operation op, struct internal_end *end)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)side->endpoint;
    int result;

    assert_int_equal(ofpi_endpoint_enter(endpoint), 0);
    end->owner.finish = internal_finish;
    ofpi_owner_enter(&end->owner, &op);
    result = ofpi_endpoint_post(endpoint, &op);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

static inline void internal_progress(struct side *one, struct side *other, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        ofp_domain_progress(one->domain);
        ofp_domain_progress(other->domain);
    }
}

static inline void internal_await(struct internal_end *end, struct side *one, struct side *other)
{
    uint64_t deadline = ofpi_clock_read() + 20000000000ull;

    while (!end->count) {
        internal_progress(one, other, 1);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(end->count, 1);
}

/*
 * `length` bytes go over the internal channel and as many over the tagged one, with one tag, and each meets a receive of its
 * own channel; those were posted before, or are posted after the messages have come.
 */
static inline void internal_exchange(struct side *from, struct side *to, uint64_t length, bool posted)
{
    struct internal_end sent = {0}, received = {0};
    struct ofp_endpoint_statistics before, after;
    char *out = malloc(2 * length + 2), *in = calloc(2, length + 1);
    struct ofp_operation send = tagged(OFP_TSEND, from->peer, 1, out + length, length, 1);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in + length, length, 2);
    struct ofp_operation internal_send = tagged(OFP_INTERNAL_SEND, from->peer, 1, out, length, 0);
    struct ofp_operation internal_receive = tagged(OFP_INTERNAL_RECV, OFP_PEER_ANY, 1, in, length, 0);
    struct ofp_completion row;

    memset(out, 'i', length);
    memset(out + length, 't', length);
    assert_int_equal(ofp_endpoint_statistics(to->endpoint, &before), 0);
    for (int step = 0; step < 2; step++) {
        if (posted == (step == 0)) {
            assert_int_equal(ofp_post(to->endpoint, &receive, 1), 1);
            assert_int_equal(internal_post(to, internal_receive, &received), 0);
        } else {
            assert_int_equal(internal_post(from, internal_send, &sent), 0);
            assert_int_equal(ofp_post(from->endpoint, &send, 1), 1);
            internal_progress(from, to, 100);
        }
    }
    internal_await(&received, from, to);
    internal_await(&sent, from, to);
    assert_int_equal(received.last.error, 0);
    assert_int_equal(received.last.length, length);
    assert_int_equal(received.last.tag, 1);
    assert_int_equal(received.last.source, to->peer);
    row = next_completion(to, from);
    assert_int_equal(row.context, 2);
    assert_int_equal(row.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED);
    assert_int_equal(next_completion(from, to).context, 1);
    for (uint64_t i = 0; i < length; i++)
        assert_true(in[i] == 'i' && in[length + i] == 't');
    /* The application's statistics know of its own messages alone. */
    assert_int_equal(ofp_endpoint_statistics(to->endpoint, &after), 0);
    assert_int_equal(after.receives - before.receives, 1);
    free(out);
    free(in);
}

static inline void internal_sides_open(struct side *from, struct side *to)
{
    side_open(from, false, OFP_PROGRESS_MANUAL, 64);
    side_open(to, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(from, to);
}

static inline void test_internal_meets_internal(void **state)
{
    static const uint64_t lengths[] = {0, 8, 2000, 100000, 2000000};
    struct side from, to;

    (void)state;
    internal_sides_open(&from, &to);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        internal_exchange(&from, &to, lengths[i], true);
        internal_exchange(&from, &to, lengths[i], false);
    }
    side_close(&from);
    side_close(&to);
}

/* A probe, a receive with every bit ignored, and one of the message channel: none of them sees it. */
static inline void test_nobody_else_sees_it(void **state)
{
    struct internal_end sent = {0}, received = {0};
    struct side from, to;
    struct ofp_operation probe, any;
    struct ofp_completion row;
    char in[8], out[8] = "inside";

    (void)state;
    internal_sides_open(&from, &to);
    any = tagged(OFP_TRECV, OFP_PEER_ANY, 0, in, sizeof(in), 3);
    any.ignore = UINT64_MAX;
    assert_int_equal(ofp_post(to.endpoint, &any, 1), 1);
    any = tagged(OFP_RECV, OFP_PEER_ANY, 0, in, sizeof(in), 4);
    assert_int_equal(ofp_post(to.endpoint, &any, 1), 1);
    assert_int_equal(internal_post(&from, tagged(OFP_INTERNAL_SEND, from.peer, 1, out, 8, 0), &sent), 0);
    internal_progress(&from, &to, 100);
    probe = tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 5);
    probe.flags = OFP_PEEK;
    assert_int_equal(ofp_post(to.endpoint, &probe, 1), 1);
    row = next_completion(&to, &from);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ENOMSG);
    assert_int_equal(ofp_cq_read(to.cq, &row, 1), 0);
    assert_int_equal(internal_post(&to, tagged(OFP_INTERNAL_RECV, to.peer, 1, in, 8, 0), &received), 0);
    internal_await(&received, &from, &to);
    assert_string_equal(in, "inside");
    side_close(&from);
    side_close(&to);
}

#endif
