/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive context against a model that is plain lists, searched from the front: random operations, and after each
 * the completions, lent receives, memory and statistics of the two must be the same. OFIPY_TEST_SEED and
 * OFIPY_TEST_STEPS repeat or lengthen a run.
 */
#include "receive_claim_model.h"

#include <stdio.h>
#include <time.h>

/* A request holds one message: its context is its own. */
static void give_own_context(struct model_receive *receive)
{
    static uint64_t requests = 1000;

    if (receive->posting.flags & OFPI_REQUEST)
        receive->posting.context = requests++;
}

static struct model_receive *random_receive(void)
{
    struct model_receive *receive = malloc(sizeof(*receive));
    static const uint64_t request[2] = {0, OFPI_REQUEST};
    uint64_t kind = draw(10);

    assert_non_null(receive);
    *receive = (struct model_receive){0};
    memset(receive->memory, 0x55, sizeof(receive->memory));
    receive->posting = (struct posting){
        .flags = request[draw(2)],
        .context = draw(64),
        .peer = draw(3) ? (uint32_t)draw(PEERS) : OFP_PEER_ANY,
        .tag = draw(32),
        .untagged = draw(8) == 0,
        .memory = receive->memory,
        .length = draw(4) ? LONGEST : draw(LONGEST),
    };
    if (kind == 0)
        receive->posting.ignore = UINT64_MAX;
    else if (kind < 4)
        receive->posting.ignore = draw(MASKS);
    return receive;
}

/* The buffers that would have been the message's but have too little room left end; then its own is found. */
static int settle_posted(const struct model_message *message)
{
    for (uint32_t i = 0; i < posted_count;) {
        if (!matches(&posted[i]->posting, &message->message))
            i++;
        else if (fits(posted[i], message))
            return (int)i;
        else
            end_many(take_posted(i), 0);
    }
    return -1;
}

/* The posted receive for a message, which is used up or has become smaller. */
static struct model_receive *use_posted(uint32_t place, struct model_message *message)
{
    if (is_many(posted[place])) {
        cut(posted[place], message);
        if (!posted[place]->closed)
            return posted[place];
    }
    return take_posted(place);
}

static struct model_message take_waiting(uint32_t place)
{
    struct model_message message = waiting[place];

    LIST_REMOVE(waiting, waiting_count, place);
    return message;
}

/* Every waiting message that matches goes into it, as long as it has room. */
static void step_receive_many(void)
{
    struct model_receive *receive = random_receive();
    bool closed = false;
    int place;

    if (posted_count == DEPTH) {
        free(receive);
        return;
    }
    receive->posting.flags |= OFP_MULTI_RECV;
    assert_int_equal(post(&fixture, receive->posting), 0);
    while (!closed && (place = find_waiting(&receive->posting)) >= 0) {
        struct model_message message;

        if (!fits(receive, &waiting[place])) {
            end_many(receive, 0);
            return;
        }
        message = take_waiting((uint32_t)place);
        cut(receive, &message);
        closed = receive->closed;
        meet(receive, message);
    }
    if (!closed)
        posted[posted_count++] = receive;
}

static void step_receive(uint64_t more_flags)
{
    struct model_receive *receive = random_receive();
    struct model_message message;
    int place;

    if (posted_count == DEPTH) {
        free(receive);
        return;
    }
    receive->posting.flags |= more_flags;
    if (more_flags & OFP_HOLD)
        give_own_context(receive);
    place = find_waiting(&receive->posting);
    assert_int_equal(post(&fixture, receive->posting), 0);
    if (place < 0) {
        posted[posted_count++] = receive;
        return;
    }
    message = take_waiting((uint32_t)place);
    meet(receive, message);
}

static void drop_message(const struct model_message *message)
{
    if (message->moving) {
        detach(NULL, message);
        return;
    }
    free_kept(message);
    if (message->announced && !message->lost)
        expect_lent(NULL, message);
}

static void step_peek(uint64_t more_flags)
{
    struct model_receive *receive = random_receive();
    struct model_message message;
    int place;

    receive->posting.flags |= OFP_PEEK | more_flags;
    if (more_flags & OFP_CLAIM)
        give_own_context(receive);
    place = find_waiting(&receive->posting);
    assert_int_equal(post(&fixture, receive->posting), 0);
    if (place < 0) {
        expect_completion(&receive->posting, NULL, 0, ENOMSG);
    } else {
        message = waiting[place];
        if (more_flags)
            LIST_REMOVE(waiting, waiting_count, (uint32_t)place);
        expect_completion(&receive->posting, &message.message, more_flags & OFP_CLAIM ? OFP_COMPLETED_CLAIM : 0, 0);
        if (more_flags & OFP_CLAIM)
            put_aside(&receive->posting, message);
        if (more_flags & OFP_DISCARD)
            drop_message(&message);
    }
    free(receive);
}

static void step_claim(uint64_t more_flags)
{
    struct model_receive *receive = random_receive();
    struct model_message message;
    int place, result;

    if (set_aside_count && draw(4)) {
        message = set_aside[draw(set_aside_count)];
        receive->posting.context = message.context;
        receive->posting.flags = message.request ? OFPI_REQUEST : 0;
    }
    receive->posting.flags |= OFP_CLAIM | more_flags;
    place = find_set_aside(receive->posting.context, receive->posting.flags & OFPI_REQUEST);
    if (place >= 0 && is_claimed(&set_aside[place])) {
        free(receive);
        return;
    }
    result = post(&fixture, receive->posting);
    if (place < 0) {
        assert_int_equal(result, -ENOENT);
        free(receive);
        return;
    }
    assert_int_equal(result, 0);
    message = set_aside[place];
    if (!more_flags && message.request && !message.lost && message.message.length <= receive->posting.length) {
        expect_claim(receive, &set_aside[place]);
        return;
    }
    LIST_REMOVE(set_aside, set_aside_count, (uint32_t)place);
    if (!more_flags) {
        meet(receive, message);
        return;
    }
    expect_completion(&receive->posting, &message.message, 0, 0);
    drop_message(&message);
    free(receive);
}

static void put_back(struct model_message message)
{
    uint32_t place = waiting_count++;

    for (; place > 0 && waiting[place - 1].arrival > message.arrival; place--)
        waiting[place] = waiting[place - 1];
    waiting[place] = message;
}

static void step_unclaim(void)
{
    uint64_t context = set_aside_count && draw(4) ? set_aside[draw(set_aside_count)].context : draw(64);
    int place = find_set_aside(context, true), result;
    struct model_message message;

    if (waiting_count == DEPTH)
        return;
    if (place < 0)
        place = find_set_aside(context, false);
    result = ofpi_receive_unclaim(fixture.context, endpoint_of(&fixture), context, NULL);
    assert_int_equal(result, place < 0 ? -ENOENT : set_aside[place].lender_holds);
    if (place < 0)
        return;
    message = set_aside[place];
    LIST_REMOVE(set_aside, set_aside_count, (uint32_t)place);
    forget_claim(&message);
    if (message.lost) {
        free_kept(&message);
        return;
    }
    place = settle_posted(&message);
    if (place < 0) {
        put_back(message);
    } else {
        struct model_receive *receive = use_posted((uint32_t)place, &message);

        meet(receive, message);
    }
}

static struct model_message random_message(void)
{
    uint32_t source = (uint32_t)draw(PEERS);
    struct model_message message = {.arrival = arrivals, .announced = draw(4) == 0};

    message.message = message_from(&fixture, source, draw(32), draw(3) ? draw(SHORT + 8) : draw(LONGEST));
    message.message.channel = draw(8) ? OFP_CHANNEL_TAGGED : OFP_CHANNEL_MESSAGE;
    message.message.has_data = draw(2) != 0;
    message.message.data = draw(1000);
    message.message.provider_data[0] = arrivals;
    return message;
}

static void step_message(void)
{
    struct model_message message = random_message();
    int place = find_posted(&message), result;
    bool hold = place >= 0 && posted[place]->posting.flags & OFP_HOLD, room;
    char payload[LONGEST];

    if (waiting_count == DEPTH || set_aside_count == DEPTH)
        return;
    room = (place >= 0 && !hold) || has_room(&message, hold);
    payload_of(&message, payload);
    result = message.announced
                 ? ofpi_message_announced(fixture.context, endpoint_of(&fixture), &message.message)
                 : ofpi_message_arrived(fixture.context, endpoint_of(&fixture), &message.message, payload);
    memset(payload, 0, sizeof(payload));
    place = settle_posted(&message);
    if (!room) {
        assert_int_equal(result, message.announced ? -ENOBUFS : -EAGAIN);
        return;
    }
    assert_int_equal(result, 0);
    arrivals++;
    if (place >= 0 && !hold) {
        struct model_receive *receive = use_posted((uint32_t)place, &message);

        hand_over(receive, &message);
        return;
    }
    account(&message, 1);
    if (hold)
        meet(take_posted((uint32_t)place), message);
    else
        waiting[waiting_count++] = message;
}

/* A posted receive ends without a message. */
static void end_posted(uint32_t place, int error)
{
    struct model_receive *receive = take_posted(place);

    if (is_many(receive))
        end_many(receive, error);
    else
        expect_end(receive, NULL, error);
}

static void step_cancel(void)
{
    struct posting wanted = {.context = draw(64), .flags = draw(2) ? OFPI_REQUEST : 0};
    int result = ofpi_receive_cancel(fixture.context, endpoint_of(&fixture), wanted.context, wanted.flags);
    uint32_t place = posted_count;

    while (place > 0 && (posted[place - 1]->posting.context != wanted.context ||
                         (posted[place - 1]->posting.flags & OFPI_REQUEST) != wanted.flags))
        place--;
    assert_int_equal(result, place ? 0 : -ENOENT);
    if (!place)
        return;
    end_posted(place - 1, ECANCELED);
}

/* The provider moves the payload of one receive, in two pieces out of order, and completes it. */
static void step_move(void)
{
    uint32_t place;
    struct model_lent moved;
    char bytes[LONGEST];
    uint64_t half;

    if (!lent_count)
        return;
    place = (uint32_t)draw(lent_count);
    moved = lent[place];
    LIST_REMOVE(lent, lent_count, place);
    assert_ptr_equal(ofpi_receive_find(moved.message.message.peer, moved.real->id), moved.real);
    payload_of(&moved.message, bytes);
    half = draw(moved.real->length + 1);
    ofpi_receive_write(moved.real, half, bytes + half, moved.message.message.length - half);
    ofpi_receive_write(moved.real, 0, bytes, half);
    ofpi_receive_complete(moved.real, 0, 0);
    if (moved.kept)
        expect_moved(&moved);
    else if (moved.receive)
        expect_delivery(moved.receive, &moved.message);
}

static void step_peer_lost(void)
{
    const struct ofp_peer *peer = &fixture.peers[draw(PEERS)].base;
    bool process_gone = draw(2);

    lose(&fixture, peer->index, OFP_EPEERLOST, process_gone);
    for (uint32_t i = 0; i < lent_count;) {
        if (lent[i].message.message.peer != peer) {
            i++;
            continue;
        }
        if (lent[i].kept)
            expect_broken(&lent[i], OFP_EPEERLOST);
        else if (lent[i].receive)
            expect_end(lent[i].receive, &lent[i].message, OFP_EPEERLOST);
        LIST_REMOVE(lent, lent_count, i);
    }
    for (uint32_t i = 0; i < waiting_count;) {
        if (waiting[i].announced && waiting[i].message.peer == peer) {
            account(&waiting[i], -1);
            LIST_REMOVE(waiting, waiting_count, i);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < set_aside_count; i++)
        set_aside[i].lost |= set_aside[i].announced && set_aside[i].message.peer == peer;
    for (uint32_t i = 0; process_gone && i < posted_count;) {
        if (posted[i]->posting.peer == peer->index)
            end_posted(i, OFP_EPEERLOST);
        else
            i++;
    }
}

static void step_drain(void)
{
    ofpi_receive_context_drain(fixture.context, endpoint_of(&fixture), ECANCELED);
    while (posted_count)
        end_posted(0, ECANCELED);
    for (uint32_t i = 0; i < lent_count; i++)
        if (lent[i].kept)
            expect_broken(&lent[i], ECANCELED);
        else if (lent[i].receive)
            expect_end(lent[i].receive, &lent[i].message, ECANCELED);
    lent_count = 0;
    expect_dropped();
    kept_bytes = kept_memory = kept_announced = 0;
    throttled = false;
}

static void random_posting(void)
{
    uint64_t kind = draw(6);

    if (kind < 2)
        step_receive(OFP_HOLD | OFP_CLAIM);
    else if (kind == 2)
        step_receive_many();
    else
        step_receive(0);
}

/* Phases lean towards messages or towards receives, so that either side gets deep. */
static void step(bool lean)
{
    uint64_t choice = draw(100);

    if (choice < 64) {
        if ((draw(100) < 60) == lean)
            step_message();
        else
            random_posting();
    } else if (choice < 71) {
        static const uint64_t peeks[4] = {0, OFP_CLAIM, OFP_CLAIM, OFP_DISCARD};

        step_peek(peeks[draw(4)]);
    } else if (choice < 81) {
        step_claim(draw(4) ? 0 : OFP_DISCARD);
    } else if (choice < 86) {
        step_unclaim();
    } else if (choice < 90) {
        step_cancel();
    } else if (choice < 92) {
        step_accept();
    } else if (choice < 93) {
        step_fetch();
    } else {
        step_move();
    }
}

static void compare_statistics(void)
{
    struct ofpi_receive_context_statistics statistics = statistics_of(&fixture);

    assert_quiet(&fixture);
    fixture.completion_count = fixture.completion_next = 0;
    fixture.started_count = fixture.started_next = 0;
    assert_int_equal(statistics.posted_receives, posted_count);
    assert_int_equal(statistics.unexpected_messages, waiting_count + set_aside_count + detached_count);
    assert_int_equal(statistics.unexpected_bytes, kept_bytes);
    assert_int_equal(ofpi_receive_context_is_announce_only(fixture.context), throttled);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void test_random_operations_agree_with_the_model(void **state)
{
    uint64_t seed = number_from("OFIPY_TEST_SEED", (uint64_t)time(NULL));
    uint64_t steps = number_from("OFIPY_TEST_STEPS", 300000);
    uint64_t searches = 0;

    (void)state;
    printf("OFIPY_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    random_state = seed * 2 + 1;
    receive_fixture_open(&fixture, MEMORY_LIMIT, ANNOUNCEMENT_LIMIT);
    for (uint64_t i = 0; i < steps; i++) {
        step(i / 1000 % 2);
        compare_statistics();
        if (lent_count > DEPTH / 2)
            step_move();
        if (draw(2000) == 0)
            step_peer_lost();
        if (draw(20000) == 0)
            step_drain();
    }
    searches = statistics_of(&fixture).linear_searches;
    assert_true(searches > 0);
    step_drain();
    receive_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_operations_agree_with_the_model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
