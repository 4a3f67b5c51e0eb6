/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of messages that requests hold: claimed, fetched, accepted and given back. For one test program. */
#ifndef RECEIVE_CLAIM_MODEL_H
#define RECEIVE_CLAIM_MODEL_H

#include "receive_model.h"

static int find_set_aside(uint64_t context, bool request)
{
    for (uint32_t i = 0; i < set_aside_count; i++)
        if (set_aside[i].context == context && set_aside[i].request == request)
            return (int)i;
    return -1;
}

/* A request that has claimed its message does nothing more to it but accept it or give it back. */
static bool is_claimed(const struct model_message *message) { return message->claim || message->received; }

static void expect_fetch(struct model_message *message)
{
    struct ofp_receive *real = next_started(&fixture);

    account(message, -1);
    message->announced = false;
    message->moving = true;
    account(message, 1);
    assert_int_equal(real->message.provider_data[0], message->arrival);
    assert_int_equal(real->length, message->message.length);
    assert_true(lent_count < DEPTH);
    lent[lent_count++] = (struct model_lent){.message = *message, .real = real, .kept = true};
}

/* The request that holds it claims a message whose payload is not lost, with enough room. */
static void expect_claim(struct model_receive *receive, struct model_message *message)
{
    struct model_message whole = *message;

    if (message->announced) {
        account(message, -1);
        message->lender = message->message.length > SHORT ? receive : NULL;
        message->lender_holds = message->lender;
        account(message, 1);
        expect_fetch(message);
        message->claim = receive;
    } else if (message->moving) {
        message->claim = receive;
    } else {
        message->received = true;
        expect_delivery(receive, &whole);
    }
}

/* Nobody has claimed it in time. */
static void step_fetch(void)
{
    bool was_due = fetch_is_due;
    uint64_t done = 0;

    fetch_is_due = false;
    assert_int_equal(ofpi_timers_run(&fixture.domain.timers, UINT64_MAX), was_due);
    while (was_due) {
        struct model_message *next = NULL, here;

        for (uint32_t i = 0; i < set_aside_count; i++)
            if (set_aside[i].aside >= done && (!next || set_aside[i].aside < next->aside))
                next = &set_aside[i];
        if (!next)
            return;
        done = next->aside + 1;
        if (!next->announced || next->lost || !next->request)
            continue;
        here = *next;
        here.announced = false;
        if (has_room(&here, true))
            expect_fetch(next);
    }
}

static void step_accept(void)
{
    struct model_message message;
    uint32_t place;

    if (!set_aside_count)
        return;
    place = (uint32_t)draw(set_aside_count);
    message = set_aside[place];
    if (!message.received)
        return;
    ofpi_receive_accept(fixture.context, endpoint_of(&fixture), message.context);
    LIST_REMOVE(set_aside, set_aside_count, place);
    if (!message.lender_holds) {
        free_kept(&message);
        return;
    }
    account(&message, -1);
    free(message.lender);
}

/* Its request gives it back. */
static void forget_claim(struct model_message *message)
{
    if (message->claim && message->claim != message->lender)
        free(message->claim);
    message->claim = NULL;
    message->received = message->lender_holds = false;
}

/* The payload of a kept message in a list has come. */
static void expect_filled(struct model_message *message)
{
    struct model_receive *claim = message->claim;
    char bytes[LONGEST] = "";

    message->moving = false;
    message->claim = NULL;
    if (!claim)
        return;
    message->received = true;
    if (!message->lender_holds) {
        expect_delivery(claim, message);
        return;
    }
    payload_of(message, bytes);
    assert_memory_equal(claim->memory, bytes, message->message.length);
    expect_completion(&claim->posting, &message->message, 0, 0);
}

static struct model_message *find_kept(uint64_t arrival)
{
    for (uint32_t i = 0; i < waiting_count; i++)
        if (waiting[i].arrival == arrival)
            return &waiting[i];
    for (uint32_t i = 0; i < set_aside_count; i++)
        if (set_aside[i].arrival == arrival)
            return &set_aside[i];
    return NULL;
}

/* The provider has moved the payload of a kept message. */
static void expect_moved(const struct model_lent *moved)
{
    if (!moved->detached) {
        expect_filled(find_kept(moved->message.arrival));
        return;
    }
    detached_count--;
    if (moved->receive)
        expect_delivery(moved->receive, &moved->message);
    free_kept(&moved->message);
}

/* It never will. */
static void expect_broken(const struct model_lent *broken, int error)
{
    struct model_message *kept = find_kept(broken->message.arrival), message = broken->message;

    if (broken->detached) {
        detached_count--;
        if (broken->receive)
            expect_end(broken->receive, &message, error);
        free_kept(&message);
        return;
    }
    message = *kept;
    if (kept >= set_aside && kept < set_aside + set_aside_count) {
        kept->moving = false;
        kept->lost = true;
        if (!message.claim)
            return;
        LIST_REMOVE(set_aside, set_aside_count, (uint32_t)(kept - set_aside));
        if (message.lender_holds)
            account(&message, -1);
        else
            free_kept(&message);
        expect_end(message.claim, &message, error);
        return;
    }
    LIST_REMOVE(waiting, waiting_count, (uint32_t)(kept - waiting));
    free_kept(&message);
}

/* The endpoint drops what it keeps, in the order of its lists. */
static void expect_dropped(void)
{
    while (waiting_count) {
        struct model_message message = waiting[0];

        LIST_REMOVE(waiting, waiting_count, 0);
        free_kept(&message);
    }
    while (set_aside_count) {
        uint32_t oldest = 0;
        struct model_message message;

        for (uint32_t i = 0; i < set_aside_count; i++)
            if (set_aside[i].aside < set_aside[oldest].aside)
                oldest = i;
        message = set_aside[oldest];
        LIST_REMOVE(set_aside, set_aside_count, oldest);
        if (!message.lender_holds)
            free_kept(&message);
        else
            free(message.lender);
    }
}

#endif
