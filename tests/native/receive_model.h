/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the receive context: plain lists, oldest first, searched from the front; and what the context should
 * report when a message meets a receive. For one test program.
 */
#ifndef RECEIVE_MODEL_H
#define RECEIVE_MODEL_H

#include "receive_fixture.h"

#define DEPTH 400   /* entries of each list of the model */
#define LONGEST 300 /* bytes of a payload */
#define MEMORY_LIMIT 60000
#define ANNOUNCEMENT_LIMIT 60
#define SHORT 64
#define ENTRY 256 /* what a message takes beside payload above SHORT */
#define MASKS 20  /* more than are indexed */

struct model_receive {
    struct posting posting;
    char memory[LONGEST];
    /* A multi-receive buffer: */
    uint64_t used, under_way;
    bool closed; /* takes no more */
    int error;
};

struct model_message {
    struct ofp_message message;
    uint64_t arrival; /* place in the order, and the seed of its payload */
    bool announced, lost;
    uint64_t context; /* set aside: under which context and request bit */
    bool request;
    uint64_t aside; /* the how manieth that was set aside */
    /* Of one that a request holds, or has given back: */
    bool moving;                  /* its payload is on its way into its memory */
    struct model_receive *claim;  /* is to get it when it has come; NULL: nobody yet */
    bool received;                /* its request has got it, and not accepted it */
    struct model_receive *lender; /* whose memory it has; NULL: its own */
    bool lender_holds;            /* that is the request which holds it */
    uint64_t offset;              /* met a multi-receive buffer: where its room begins */
};

struct model_lent {
    struct model_receive *receive; /* NULL: dropped */
    struct model_message message;
    struct ofp_receive *real;
    bool kept; /* it fills the memory of a kept message, which is in its list still, unless: */
    bool detached;
};

static struct receive_fixture fixture;
/* Each list has the oldest first. */
static struct model_receive *posted[DEPTH];
static struct model_message waiting[DEPTH], set_aside[DEPTH];
static struct model_lent lent[DEPTH];
static uint32_t posted_count, waiting_count, set_aside_count, lent_count;
static uint32_t detached_count; /* kept messages in no list, which are filled still */
static uint64_t arrivals, asides, kept_bytes, kept_memory, kept_announced;
static bool fetch_is_due;
static bool throttled;
static uint64_t random_state;

static uint64_t draw(uint64_t range)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state * 0x2545f4914f6cdd1du >> 33) % range;
}

#define LIST_REMOVE(list, count, place)                                                                                \
    do {                                                                                                               \
        memmove(&(list)[place], &(list)[(place) + 1], ((count) - (place) - 1) * sizeof((list)[0]));                    \
        (count)--;                                                                                                     \
    } while (0)

static void payload_of(const struct model_message *message, char *bytes)
{
    for (uint64_t i = 0; i < message->message.length; i++)
        bytes[i] = (char)(message->arrival * 31 + i);
}

static bool matches(const struct posting *posting, const struct ofp_message *message)
{
    if (posting->untagged == message->channel)
        return false;
    if (posting->peer != OFP_PEER_ANY && posting->peer != message->source)
        return false;
    return posting->untagged || !((posting->tag ^ message->tag) & ~posting->ignore);
}

/* ---------------------------------------------------------------------------------- what the context should report */

static void expect_completion(const struct posting *posting, const struct ofp_message *message, uint64_t flags,
                              int error)
{
    struct recorded record = next_record(&fixture);

    assert_int_equal(record.op_flags, posting->flags);
    assert_int_equal(record.completion.context, posting->context);
    assert_int_equal(record.completion.error, error);
    assert_int_equal(record.completion.flags & (OFP_COMPLETED_CLAIM | OFP_COMPLETED_MULTI_RECV), flags);
    if (!message)
        return;
    assert_int_equal(record.completion.flags & ~(OFP_COMPLETED_CLAIM | OFP_COMPLETED_MULTI_RECV),
                     OFP_COMPLETED_RECV | (message->channel ? OFP_COMPLETED_TAGGED : OFP_COMPLETED_MSG) |
                         (message->has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0));
    assert_int_equal(record.completion.source, message->source);
    assert_int_equal(record.completion.tag, message->channel ? message->tag : 0);
    assert_int_equal(record.completion.data, message->has_data ? message->data : 0);
    assert_int_equal(record.completion.length, error && error != OFP_ETRUNC ? 0 : message->length);
}

/* ---------------------------------------------------------------------------------------- multi-receive buffers */

static bool is_many(const struct model_receive *receive) { return receive->posting.flags & OFP_MULTI_RECV; }

static bool fits(const struct model_receive *receive, const struct model_message *message)
{
    return !is_many(receive) || !receive->used || message->message.length <= receive->posting.length - receive->used;
}

static void cut(struct model_receive *receive, struct model_message *message)
{
    uint64_t room = receive->posting.length - receive->used, length = message->message.length;

    message->offset = receive->used;
    receive->used += length < room ? length : room;
    receive->under_way++;
    receive->closed = length > room || receive->posting.length - receive->used < MIN_MULTI_RECV;
}

/* Nothing was written behind its messages. */
static void free_many(struct model_receive *receive)
{
    char before[LONGEST];

    memset(before, 0x55, sizeof(before));
    assert_memory_equal(receive->memory + receive->used, before, LONGEST - receive->used);
    free(receive);
}

static void expect_release(struct model_receive *receive)
{
    struct recorded record = next_record(&fixture);

    assert_int_equal(record.completion.flags, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(record.completion.context, receive->posting.context);
    assert_int_equal(record.completion.error, receive->error);
    assert_int_equal(record.completion.length, 0);
    free_many(receive);
}

static void end_many(struct model_receive *receive, int error)
{
    receive->closed = true;
    receive->error = error;
    if (!receive->under_way)
        expect_release(receive);
}

/* ----------------------------------------------------------------------------------------------------------- ends */

/* A receive ends, or one message of many does. */
static void expect_end(struct model_receive *receive, const struct model_message *message, int error)
{
    bool last;

    if (!is_many(receive)) {
        expect_completion(&receive->posting, message ? &message->message : NULL, 0, error);
        free(receive);
        return;
    }
    last = --receive->under_way == 0 && receive->closed;
    assert_int_equal(fixture.completions[fixture.completion_next].completion.buffer_offset, message->offset);
    expect_completion(&receive->posting, &message->message, last && !receive->error ? OFP_COMPLETED_MULTI_RECV : 0,
                      error);
    if (last && receive->error)
        expect_release(receive);
    else if (last)
        free_many(receive);
}

/* A finished receive: its memory holds as much of the payload as fits and nothing else was touched. */
static void expect_delivery(struct model_receive *receive, const struct model_message *message)
{
    uint64_t room = receive->posting.length - message->offset, length = message->message.length;
    int error = length > room ? OFP_ETRUNC : 0;
    char bytes[LONGEST] = "", before[LONGEST];

    payload_of(message, bytes);
    memset(before, 0x55, sizeof(before));
    length = length < room ? length : room;
    assert_memory_equal(receive->memory + message->offset, bytes, length);
    if (!is_many(receive))
        assert_memory_equal(receive->memory + length, before, LONGEST - length);
    expect_end(receive, message, error);
}

static void expect_lent(struct model_receive *receive, const struct model_message *message)
{
    struct ofp_receive *real = next_started(&fixture);
    uint64_t room = receive ? receive->posting.length - message->offset : 0, length = message->message.length;

    assert_ptr_equal(real->message.peer, message->message.peer);
    assert_int_equal(real->message.provider_data[0], message->arrival);
    assert_int_equal(real->length, length < room ? length : room);
    assert_true(lent_count < DEPTH);
    lent[lent_count++] = (struct model_lent){.receive = receive, .message = *message, .real = real};
}

static uint64_t memory_of(const struct model_message *message)
{
    return ENTRY + (message->message.length > SHORT && !message->lender ? message->message.length : 0);
}

static bool has_room(const struct model_message *message, bool wanted)
{
    if (message->announced)
        return wanted || kept_announced < ANNOUNCEMENT_LIMIT;
    if (wanted && message->message.length <= SHORT)
        return true;
    if (kept_memory + memory_of(message) <= MEMORY_LIMIT)
        return true;
    if (kept_memory >= MEMORY_LIMIT / 2)
        throttled = true;
    return false;
}

static void account(const struct model_message *message, int sign)
{
    uint64_t amount = (uint64_t)(int64_t)sign;

    if (message->announced) {
        kept_announced += amount;
        return;
    }
    kept_bytes += amount * message->message.length;
    kept_memory += amount * memory_of(message);
    if (sign > 0 && kept_memory >= MEMORY_LIMIT)
        throttled = true;
    if (sign < 0 && kept_memory < MEMORY_LIMIT / 2)
        throttled = false;
}

static void put_aside(const struct posting *posting, struct model_message message)
{
    uint32_t place = set_aside_count++;

    message.context = posting->context;
    message.request = posting->flags & OFPI_REQUEST;
    message.aside = asides++;
    /* Claims under one context are found in the order of arrival. */
    while (place > 0 && set_aside[place - 1].arrival > message.arrival) {
        set_aside[place] = set_aside[place - 1];
        place--;
    }
    set_aside[place] = message;
}

/* A kept message is gone; the request that lent its memory, and gave the message back, is told. */
static void free_kept(const struct model_message *message)
{
    account(message, -1);
    if (!message->lender)
        return;
    message->lender->posting.flags |= OFP_PEEK;
    expect_end(message->lender, message, ECANCELED);
}

static struct model_lent *lent_of(const struct model_message *message)
{
    struct model_lent *found = NULL;

    for (uint32_t i = 0; i < lent_count; i++)
        if (lent[i].kept && lent[i].message.arrival == message->arrival)
            found = &lent[i];
    assert_non_null(found);
    return found;
}

/* A message that is filled has left its list: for a receive, or to be dropped (NULL). */
static void detach(struct model_receive *receive, const struct model_message *message)
{
    struct model_lent *filling = lent_of(message);

    filling->receive = receive;
    filling->message = *message;
    filling->detached = true;
    detached_count++;
}

static void hand_over(struct model_receive *receive, const struct model_message *message)
{
    if (message->announced)
        expect_lent(receive, message);
    else
        expect_delivery(receive, message);
}

/* A receive meets a kept message, which is in no list any more. */
static void meet(struct model_receive *receive, struct model_message message)
{
    if (receive->posting.flags & OFP_HOLD) {
        fetch_is_due |= message.announced;
        expect_completion(&receive->posting, &message.message, OFP_COMPLETED_CLAIM, 0);
        put_aside(&receive->posting, message);
        free(receive);
        return;
    }
    if (message.moving) {
        detach(receive, &message);
    } else if (message.announced && !message.lost) {
        account(&message, -1);
        expect_lent(receive, &message);
    } else {
        if (message.lost)
            expect_end(receive, &message, OFP_EPEERLOST);
        else
            expect_delivery(receive, &message);
        free_kept(&message);
    }
}

/* -------------------------------------------------------------------------------------------------- finding */

static int find_waiting(const struct posting *posting)
{
    for (uint32_t i = 0; i < waiting_count; i++)
        if (matches(posting, &waiting[i].message))
            return (int)i;
    return -1;
}

static int find_posted(const struct model_message *message)
{
    for (uint32_t i = 0; i < posted_count; i++)
        if (matches(&posted[i]->posting, &message->message) && fits(posted[i], message))
            return (int)i;
    return -1;
}

static struct model_receive *take_posted(uint32_t place)
{
    struct model_receive *receive = posted[place];

    LIST_REMOVE(posted, posted_count, place);
    return receive;
}

#endif
