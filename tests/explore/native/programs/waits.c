/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that sleep on a queue's descriptor, as an event loop does; and what is cancelled, set aside, or closed meanwhile. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "program.h"

#define SHORT 64
#define LONG 300000
/* Messages: so few that a ring has space for all answers, since a receiver with manual progress may not call again. */
#define MESSAGES 5
#define LOOKS 8

static struct side a, b;
static uint8_t text[MESSAGES][LONG];

static void *send_all(void *length)
{
    static uint8_t own[MESSAGES][LONG];
    ofp_request_t sends[MESSAGES];

    for (uint32_t i = 0; i < MESSAGES; i++) {
        message_fill(own[i], (uint64_t)(uintptr_t)length, i);
        sends[i] = start_send(&a, own[i], (uint64_t)(uintptr_t)length, i);
    }
    for (uint32_t i = 0; i < MESSAGES; i++)
        take_whole(sends[i], 0);
    return NULL;
}

/* Until the queue names a request that has finished. */
static ofp_request_t await_news(struct side *side, int fd)
{
    for (;;) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        ofp_request_t news[8];
        int64_t count = ofp_cq_finished(side->cq, news, 1);

        CHECK(count >= 0);
        if (count > 0)
            return news[0];
        count = ofp_cq_arm(side->cq);
        CHECK(count >= 0);
        if (count == 1)
            poll(&entry, 1, -1);
    }
}

static void await_all(uint64_t length)
{
    ofp_request_t receives[MESSAGES];
    int fd = ofp_cq_fileno(b.cq);
    uint32_t left = 0;

    CHECK(fd >= 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        receives[i] = start_receive(&b, text[i], length, i);
        left += ofp_request_notify(receives[i], false) == 0;
    }
    for (; left; left--)
        CHECK(ofp_request_finished(await_news(&b, fd)) == 1);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        take_whole(receives[i], length);
        message_check(text[i], length, i);
    }
}

static void run_loop(void)
{
    uint64_t length = schedule_draw(2) ? LONG : SHORT;
    pthread_t sender;

    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    sender = thread_start("A", send_all, (void *)(uintptr_t)length);
    await_all(length);
    thread_join(sender);
    pair_close(&a, &b);
}

const struct program program_loop = {"loop", "fake,shm,tcp,rdm,link", 0, run_loop, NULL};

/* ------------------------------------------------------------ the helper receives, while the program sleeps elsewhere */

static void run_helped(void)
{
    static const uint64_t lengths[] = {4000, 30000, LONG};
    uint64_t length = lengths[schedule_draw(3)];
    ofp_request_t receives[MESSAGES];
    pthread_t sender;

    pair_open(&a, &b, OFP_PROGRESS_AUTO);
    for (uint32_t i = 0; i < MESSAGES; i++)
        receives[i] = start_receive(&b, text[i], length, i);
    sender = thread_start("A", send_all, (void *)(uintptr_t)length);
    /* A look now and then takes what an armed helper was woken for, and may leave a part of it. */
    for (int i = 0; i < LOOKS; i++) {
        struct timespec pause = {.tv_nsec = 1000L << schedule_draw(13)};

        nanosleep(&pause, NULL);
        CHECK(ofp_domain_progress(b.domain) >= 0);
    }
    /* A's sends end only when they were received: nobody but the helper does that. */
    thread_join(sender);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        take_whole(receives[i], length);
        message_check(text[i], length, i);
    }
    pair_close(&a, &b);
}

/* The helper looks each millisecond while it cannot arm: so long for each part of a message in a bounce buffer. */
const struct program program_helped = {"helped", "fake,shm,tcp,rdm,link", 400 * MS, run_helped, NULL};

/* ------------------------------------------------------------------------------------------- set aside, then received */

static ofp_request_t start_hold(uint64_t tag)
{
    struct ofp_operation hold = {.op = OFP_TRECV, .peer = b.peer, .tag = tag, .flags = OFP_HOLD | OFP_CLAIM};
    ofp_request_t request = ofp_request_start(b.endpoint, &hold, 0, FOR_EVER);

    CHECK(request > 0);
    return request;
}

static ofp_request_t held[MESSAGES];
static bool has_sent;

static void *send_held(void *length)
{
    send_all(length);
    has_sent = true;
    return NULL;
}

/* As a task that is not the loop: it receives what was set aside as soon as it can. */
static void *claim_held(void *length)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct ofp_completion completion = {0};
        int result;

        while (ofp_request_finished(held[i]) == 0)
            ofp_request_wait(held[i], FOR_EVER);
        result = ofp_request_claim(held[i], 0, (uint64_t)(uintptr_t)text[i], (uint64_t)(uintptr_t)length, &completion);
        CHECK(result == 0 || result == 1);
        if (result == 0)
            completion = take_completion(held[i]);
        CHECK(!completion.error && completion.length == (uint64_t)(uintptr_t)length);
        message_check(text[i], completion.length, i);
    }
    /* With manual progress a sender may wait for what this side does in its next call. */
    while (!has_sent) {
        struct timespec pause = {.tv_nsec = 2 * MS};

        CHECK(ofp_domain_progress(b.domain) >= 0);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void run_set_aside(void)
{
    uint64_t length = schedule_draw(2) ? LONG : SHORT;
    pthread_t threads[2];
    ofp_request_t news[8];
    int fd;

    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    fd = ofp_cq_fileno(b.cq);
    CHECK(fd >= 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        held[i] = start_hold(i);
        CHECK(ofp_request_notify(held[i], false) == 0);
    }
    threads[0] = thread_start("A", send_held, (void *)(uintptr_t)length);
    threads[1] = thread_start("claimer", claim_held, (void *)(uintptr_t)length);
    thread_join(threads[0]);
    thread_join(threads[1]);
    /* Each was told of once, or twice: when it was set aside, and when it was received. Then there is no news. */
    for (uint32_t told = 0; ofp_cq_finished(b.cq, news, 8) > 0;)
        CHECK(++told <= 2 * MESSAGES);
    for (uint32_t i = 0; i < MESSAGES; i++)
        CHECK(ofp_request_accept(held[i], false) == 0);
    pair_close(&a, &b);
}

const struct program program_set_aside = {"set-aside", "fake,shm,tcp,rdm,link", 0, run_set_aside, NULL};

/* ------------------------------------------------------------------------------- cancelled while the message comes */

static ofp_request_t cancelled;

static void *cancel_it(void *unused)
{
    int result = ofp_request_cancel(cancelled);

    CHECK(result == 0 || result == -ENOENT || result == -ESTALE);
    return unused;
}

static void run_cancel(void)
{
    pthread_t threads[2];
    struct ofp_completion completion;

    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    cancelled = start_receive(&b, text[0], SHORT, 0);
    threads[0] = thread_start("A", send_all, (void *)SHORT);
    threads[1] = thread_start("canceller", cancel_it, NULL);
    completion = take_completion(cancelled);
    CHECK(completion.error == 0 || completion.error == ECANCELED);
    /* The message is there, if the receive is not. */
    if (completion.error)
        take_whole(start_receive(&b, text[0], SHORT, 0), SHORT);
    message_check(text[0], SHORT, 0);
    for (uint32_t i = 1; i < MESSAGES; i++) {
        take_whole(start_receive(&b, text[i], SHORT, i), SHORT);
        message_check(text[i], SHORT, i);
    }
    thread_join(threads[0]);
    thread_join(threads[1]);
    pair_close(&a, &b);
}

const struct program program_cancel = {"cancel", "fake,shm,tcp,rdm,link,link-rdm", 0, run_cancel, NULL};

/* --------------------------------------------------------------------------------------------- closed while one waits */

static void *wait_for_nothing(void *unused)
{
    struct ofp_completion completion = take_completion(cancelled);

    CHECK(completion.error == ECANCELED || completion.error == -ESTALE || completion.error == -ECANCELED);
    return unused;
}

static void run_close(void)
{
    pthread_t waiter;

    side_open(&b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    b.peer = OFP_PEER_ANY;
    cancelled = start_receive(&b, text[0], SHORT, 0);
    waiter = thread_start("waiter", wait_for_nothing, NULL);
    CHECK(ofp_endpoint_close(b.endpoint, 0) == 0);
    thread_join(waiter);
    side_close_rest(&b);
}

const struct program program_close = {"close", "fake,shm,tcp,rdm,link", 0, run_close, NULL};
