/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures matching at a given depth.
 *
 * A receive context contains `depth` receives (or unexpected messages) from one source. One iteration is the arrival
 * of a message of 8 bytes, its match, the copy, the completion, which is checked and counted, and the post that
 * replaces the receive, so the depth is constant. A sweep visits all of them once, newest first. Each is replaced on
 * the way, so the next sweep runs in the other direction. Between two uses of an entry lie, on average, as many
 * others as the depth, so the result includes the cache misses. It does not include a transport or the completion
 * queue. Each receive has 8 bytes of memory of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "match/receive_context.h"
#include "match/receive_post.h"
#include "object/endpoint.h"
#include "object/peer.h"
#include "ofipy/measure.h"

#define MESSAGE_BYTES 8
#define IGNORED_BITS 8
#define SOURCE 1u

struct match_mode {
    const char *name;
    bool unexpected; /* the messages wait for receives */
    bool same_tag;
    uint32_t source;
    uint64_t ignore;
};

static const struct match_mode match_modes[] = {
    {.name = "expected", .source = SOURCE},
    {.name = "unexpected", .source = SOURCE, .unexpected = true},
    {.name = "same-tag", .source = SOURCE, .same_tag = true},
    {.name = "any-source", .source = OFP_PEER_ANY},
    {.name = "masked", .source = SOURCE, .ignore = (1 << IGNORED_BITS) - 1},
};

struct match_loop {
    const struct match_mode *mode;
    struct ofpi_receive_context *context;
    struct ofpi_endpoint endpoint; /* as much of one as matching uses */
    struct ofpi_peer peer, *peers[SOURCE + 1];
    uint64_t depth;
    uint64_t (*memory)[MESSAGE_BYTES / sizeof(uint64_t)]; /* memory of all receives */
    uint64_t place;                                       /* number of the next receive or message */
    bool upwards;
    uint64_t tag; /* tag of the message that completes next */
    uint64_t completions;
};

static void count_completion(struct ofp_endpoint *endpoint, uint64_t op_flags, const struct ofp_message *message,
                             struct ofp_completion *completion)
{
    struct match_loop *loop = endpoint->private;

    (void)op_flags, (void)message;
    if (!completion->error && completion->tag == loop->tag && completion->length == MESSAGE_BYTES)
        loop->completions++;
}

static uint64_t compute_tag(const struct match_loop *loop, uint64_t place)
{
    return loop->mode->same_tag ? 0 : place << IGNORED_BITS;
}

static int post_matching_receive(struct match_loop *loop, uint64_t place)
{
    struct ofp_operation op = {
        .op = OFP_TRECV,
        .peer = loop->mode->source,
        .context = place,
        .tag = compute_tag(loop, place),
        .ignore = loop->mode->ignore,
    };
    struct iovec iov = {loop->memory[place], MESSAGE_BYTES};
    struct ofp_region *region = NULL;
    struct ofp_transfer transfer = {
        .op = &op, .iov = &iov, .regions = &region, .iov_count = 1, .length = MESSAGE_BYTES};

    return ofpi_receive_post(loop->context, &loop->endpoint.base, &transfer);
}

static int deliver_measured_message(struct match_loop *loop, uint64_t place)
{
    struct ofp_message message = {
        .peer = &loop->peer.base,
        .source = SOURCE,
        .channel = OFP_CHANNEL_TAGGED,
        .tag = compute_tag(loop, place) | (place & loop->mode->ignore),
        .length = MESSAGE_BYTES,
    };
    uint64_t payload = place;

    return ofpi_message_arrived(loop->context, &loop->endpoint.base, &message, &payload);
}

/* Add an entry that waits: a receive, or a message. */
static int add_entry(struct match_loop *loop, uint64_t place)
{
    return loop->mode->unexpected ? deliver_measured_message(loop, place) : post_matching_receive(loop, place);
}

static int match_entry(struct match_loop *loop, uint64_t place)
{
    loop->tag = compute_tag(loop, place) | (place & loop->mode->ignore);
    return loop->mode->unexpected ? post_matching_receive(loop, place) : deliver_measured_message(loop, place);
}

static void advance_place(struct match_loop *loop)
{
    if (loop->upwards ? loop->place + 1 < loop->depth : loop->place > 0)
        loop->place += loop->upwards ? 1 : UINT64_MAX;
    else
        loop->upwards = !loop->upwards;
}

static int run_match_loop(struct match_loop *loop, uint64_t iterations)
{
    int result = 0;

    loop->completions = 0;
    for (uint64_t i = 0; i < iterations && !result; i++) {
        result = match_entry(loop, loop->place);
        if (!result)
            result = add_entry(loop, loop->place);
        advance_place(loop);
    }
    if (!result && loop->completions != iterations)
        result = -EPROTO;
    return result;
}

static int64_t measure_match_loop(struct match_loop *loop, uint64_t iterations)
{
    uint64_t begin;
    int result = 0;

    for (uint64_t i = 0; i < loop->depth && !result; i++)
        result = add_entry(loop, i);
    loop->place = loop->depth - 1;
    if (!result)
        result = run_match_loop(loop, loop->depth); /* warm-up: memory and tables reach their final size */
    if (result)
        return result;
    begin = ofpi_clock_read();
    result = run_match_loop(loop, iterations);
    return result ? result : (int64_t)(ofpi_clock_read() - begin);
}

static const struct match_mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(match_modes) / sizeof(match_modes[0]); i++) {
        if (!strcmp(match_modes[i].name, name))
            return &match_modes[i];
    }
    return NULL;
}

int64_t ofp_measure_match(const char *mode, uint64_t depth, uint64_t iterations)
{
    struct match_loop loop = {.mode = find_mode(mode), .depth = depth};
    struct ofpi_receive_context_attr attr = {
        .unexpected_limit = UINT64_MAX, .announcement_limit = UINT64_MAX, .complete = count_completion};
    int64_t result;

    if (!loop.mode || !depth || !iterations)
        return -EINVAL;
    loop.endpoint.base.private = &loop;
    loop.peer.base = (struct ofp_peer){.endpoint = &loop.endpoint.base, .index = SOURCE, .state = OFP_PEER_UP};
    loop.peers[SOURCE] = &loop.peer;
    loop.endpoint.peers = loop.peers;
    loop.endpoint.peer_capacity = SOURCE + 1;
    loop.memory = calloc(depth, sizeof(*loop.memory));
    if (!loop.memory)
        return -ENOMEM;
    result = ofpi_receive_context_open(&attr, &loop.context);
    if (!result) {
        result = measure_match_loop(&loop, iterations);
        ofpi_receive_context_close(loop.context);
    }
    free(loop.memory);
    return result;
}
