/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive context with two endpoints whose completions and lent receives are recorded. */
#ifndef RECEIVE_FIXTURE_H
#define RECEIVE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match/receive_claim.h"
#include "match/receive_context.h"
#include "match/receive_matched.h"
#include "match/receive_post.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/peer.h"

#define PEERS 4
#define RECORDS 1024
#define MIN_MULTI_RECV 40

struct recorded {
    struct ofp_completion completion;
    struct ofp_endpoint *endpoint;
    uint64_t op_flags;
};

struct receive_fixture {
    struct ofpi_domain domain; /* its timers alone */
    struct ofpi_receive_context *context;
    struct ofpi_endpoint endpoints[2];
    struct ofp_endpoint_ops ops;
    struct ofpi_peer peers[PEERS]; /* of the first endpoint; the index is the place */
    struct recorded completions[RECORDS];
    uint32_t completion_count, completion_next;
    struct ofp_receive *started[RECORDS];
    uint32_t started_count, started_next;
    void (*on_start)(struct receive_fixture *fixture, struct ofp_receive *receive);
};

static inline void record_completion(struct ofp_endpoint *endpoint, uint64_t op_flags,
                                     const struct ofp_message *message, struct ofp_completion *completion)
{
    struct receive_fixture *fixture = endpoint->private;

    (void)message;
    assert_true(fixture->completion_count < RECORDS);
    fixture->completions[fixture->completion_count++] = (struct recorded){*completion, endpoint, op_flags};
}

static inline void record_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct receive_fixture *fixture = endpoint->private;

    if (fixture->on_start) {
        fixture->on_start(fixture, receive);
        return;
    }
    assert_true(fixture->started_count < RECORDS);
    fixture->started[fixture->started_count++] = receive;
}

static inline void start_timer(struct ofpi_domain *domain, struct ofp_timer *timer)
{
    ofpi_timers_start(&domain->timers, timer);
}

static inline void receive_fixture_open(struct receive_fixture *fixture, uint64_t unexpected_limit,
                                        uint64_t announcement_limit)
{
    struct ofpi_receive_context_attr attr = {
        .unexpected_limit = unexpected_limit,
        .announcement_limit = announcement_limit,
        .min_multi_recv = MIN_MULTI_RECV,
        .complete = record_completion,
        .domain = &fixture->domain,
        .start_timer = start_timer,
    };

    memset(fixture, 0, sizeof(*fixture));
    ofpi_timers_init(&fixture->domain.timers);
    fixture->ops.receive_start = record_start;
    assert_int_equal(ofpi_receive_context_open(&attr, &fixture->context), 0);
    for (uint32_t i = 0; i < 2; i++) {
        fixture->endpoints[i].base = (struct ofp_endpoint){
            .ops = &fixture->ops, .info = &fixture->endpoints[i].info, .private = fixture, .id = i + 1};
        fixture->endpoints[i].receive_context = fixture->context;
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->peers[i].base = (struct ofp_peer){.endpoint = &fixture->endpoints[0].base, .index = i};
        ofp_list_init(&fixture->peers[i].announced);
        ofp_list_init(&fixture->peers[i].receives);
    }
}

static inline void receive_fixture_close(struct receive_fixture *fixture)
{
    ofpi_receive_context_close(fixture->context);
    ofpi_timers_close(&fixture->domain.timers);
}

/* For each test a fixture of its own in allocated memory, so that the address sanitizer watches its ends. */
static inline int receive_fixture_set_up(void **state, uint64_t unexpected_limit, uint64_t announcement_limit)
{
    struct receive_fixture *fixture = malloc(sizeof(*fixture));

    if (!fixture)
        return -1;
    receive_fixture_open(fixture, unexpected_limit, announcement_limit);
    *state = fixture;
    return 0;
}

static inline int receive_fixture_tear_down(void **state)
{
    receive_fixture_close(*state);
    free(*state);
    return 0;
}

static inline struct ofp_endpoint *endpoint_of(struct receive_fixture *fixture) { return &fixture->endpoints[0].base; }

/* One receive-like operation with one segment. */
struct posting {
    uint64_t flags, context, tag, ignore;
    uint32_t peer;
    bool untagged;
    void *memory;
    uint64_t length;
};

static inline int post_at(struct receive_fixture *fixture, struct ofp_endpoint *endpoint, struct posting posting)
{
    struct ofp_operation op = {
        .op = posting.untagged ? OFP_RECV : OFP_TRECV,
        .peer = posting.peer,
        .flags = posting.flags,
        .context = posting.context,
        .tag = posting.tag,
        .ignore = posting.ignore,
    };
    struct iovec iov = {posting.memory, posting.length};
    struct ofp_region *region = NULL;
    struct ofp_transfer transfer = {
        .op = &op, .iov = &iov, .regions = &region, .iov_count = 1, .length = posting.length};

    return ofpi_receive_post(fixture->context, endpoint, &transfer);
}

static inline int post(struct receive_fixture *fixture, struct posting posting)
{
    return post_at(fixture, endpoint_of(fixture), posting);
}

static inline struct ofp_message message_from(struct receive_fixture *fixture, uint32_t source, uint64_t tag,
                                              uint64_t length)
{
    return (struct ofp_message){.peer = &fixture->peers[source].base,
                                .source = source,
                                .channel = OFP_CHANNEL_TAGGED,
                                .tag = tag,
                                .length = length};
}

static inline int arrive(struct receive_fixture *fixture, uint32_t source, uint64_t tag, const void *payload,
                         uint64_t length)
{
    struct ofp_message message = message_from(fixture, source, tag, length);

    return ofpi_message_arrived(fixture->context, endpoint_of(fixture), &message, payload);
}

static inline int announce(struct receive_fixture *fixture, uint32_t source, uint64_t tag, uint64_t length)
{
    struct ofp_message message = message_from(fixture, source, tag, length);

    message.provider_data[0] = tag + 1000;
    message.provider_data[5] = length;
    return ofpi_message_announced(fixture->context, endpoint_of(fixture), &message);
}

/* As the core when it loses a peer; `gone`: its process too. */
static inline void lose(struct receive_fixture *fixture, uint32_t source, int error, bool gone)
{
    ofpi_receive_context_peer_lost(fixture->context, &fixture->peers[source], error);
    if (gone)
        ofpi_receive_context_end_directed(fixture->context, source, OFP_EPEERLOST, 0);
}

/* The next completion that was not asked for yet. */
static inline struct recorded next_record(struct receive_fixture *fixture)
{
    assert_true(fixture->completion_next < fixture->completion_count);
    return fixture->completions[fixture->completion_next++];
}
static inline struct ofp_completion next_completion(struct receive_fixture *fixture)
{
    return next_record(fixture).completion;
}
static inline struct ofp_receive *next_started(struct receive_fixture *fixture)
{
    assert_true(fixture->started_next < fixture->started_count);
    return fixture->started[fixture->started_next++];
}

#define assert_quiet(fixture)                                                                                          \
    do {                                                                                                               \
        assert_int_equal((fixture)->completion_next, (fixture)->completion_count);                                     \
        assert_int_equal((fixture)->started_next, (fixture)->started_count);                                           \
    } while (0)
#define assert_completed(fixture, wanted_context, wanted_error)                                                        \
    do {                                                                                                               \
        struct ofp_completion completed = next_completion(fixture);                                                    \
        assert_int_equal(completed.context, (wanted_context));                                                         \
        assert_int_equal(completed.error, (wanted_error));                                                             \
    } while (0)

static inline struct ofpi_receive_context_statistics statistics_of(const struct receive_fixture *fixture)
{
    struct ofpi_receive_context_statistics statistics;

    ofpi_receive_context_statistics(fixture->context, &statistics);
    return statistics;
}

#endif
