/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that send, receive, and wait. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "program.h"

#define SHORT 64
#define LONG 100000
#define MESSAGES 6

static struct side a, b;

/* ------------------------------------------------------------------------------------------- two wait for one request */

static ofp_request_t shared;

static void *wait_for_shared(void *taken)
{
    struct ofp_completion completion;
    int result;

    while ((result = ofp_request_take(shared, FOR_EVER, &completion)) == 0 || result == -EINTR)
        ;
    /* One of the two takes the completion; the other finds that it is taken. */
    CHECK(result == 1 || result == -ESTALE);
    *(bool *)taken = result == 1;
    return NULL;
}

static void run_two_takers(void)
{
    uint8_t sent[SHORT], received[SHORT];
    bool first = false, second = false;
    pthread_t threads[2];
    ofp_request_t send;

    pair_open(&a, &b, OFP_PROGRESS_MANUAL);
    message_fill(sent, SHORT, 1);
    shared = start_receive(&b, received, SHORT, 1);
    threads[0] = thread_start("A", wait_for_shared, &first);
    threads[1] = thread_start("B", wait_for_shared, &second);
    send = start_send(&a, sent, SHORT, 1);
    take_whole(send, 0);
    thread_join(threads[0]);
    thread_join(threads[1]);
    CHECK(first != second);
    message_check(received, SHORT, 1);
    pair_close(&a, &b);
}

const struct program program_two_takers = {"two-takers", "fake,shm,tcp,rdm,link", 0, run_two_takers, NULL};

/* ----------------------------------------------------------------------------------------- both send, and both receive */

static uint8_t sent[2][MESSAGES][LONG], received[2][MESSAGES][LONG];
static _Atomic uint32_t sides_done;

static uint64_t length_of(uint32_t number) { return number % 3 == 2 ? LONG : SHORT; }

static void *exchange_messages(void *of)
{
    struct side *side = of;
    int mine = side == &b;
    ofp_request_t sends[MESSAGES], receives[MESSAGES];

    for (uint32_t i = 0; i < MESSAGES; i++) {
        message_fill(sent[mine][i], length_of(i), i + 100 * (uint32_t)mine);
        /* The same tag for all: they match in order. */
        receives[i] = start_receive(side, received[mine][i], LONG, 1);
        sends[i] = start_send(side, sent[mine][i], length_of(i), 1);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        take_whole(receives[i], length_of(i));
        message_check(received[mine][i], length_of(i), i + 100 * (uint32_t)!mine);
    }
    for (uint32_t i = 0; i < MESSAGES; i++)
        take_whole(sends[i], 0);
    /* A notice that a long message was taken may wait for space in the other side's ring, and so for progress here. */
    for (sides_done++; sides_done < 2; ofp_domain_progress(side->domain)) {
        struct timespec pause = {.tv_nsec = 4 * MS};

        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void run_exchange(void)
{
    pthread_t other;

    sides_done = 0;
    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    other = thread_start("B", exchange_messages, &b);
    exchange_messages(&a);
    thread_join(other);
    pair_close(&a, &b);
}

const struct program program_exchange = {"exchange", "fake,shm,tcp,rdm,link,link-rdm", 0, run_exchange, NULL};

/* ----------------------------------------------------------------------------- threads of one side, each with its tag */

static void *ask_partner(void *tag_of)
{
    uint32_t tag = (uint32_t)(uintptr_t)tag_of;
    uint8_t question[SHORT], answer[SHORT];

    for (uint32_t i = 0; i < 3; i++) {
        ofp_request_t receive = start_receive(&a, answer, SHORT, tag), send;

        message_fill(question, SHORT, tag * 10 + i);
        send = start_send(&a, question, SHORT, tag);
        take_whole(receive, SHORT);
        take_whole(send, 0);
        message_check(answer, SHORT, tag * 10 + i);
    }
    return NULL;
}

static void *answer_all(void *threads)
{
    uint8_t text[SHORT];

    for (uint32_t i = 0; i < 3 * (uint32_t)(uintptr_t)threads; i++) {
        struct ofp_operation any = {.op = OFP_TRECV,
                                    .peer = b.peer,
                                    .ignore = UINT64_MAX,
                                    .offset = (uint64_t)(uintptr_t)text,
                                    .length = SHORT};
        ofp_request_t request = ofp_request_start(b.endpoint, &any, 0, FOR_EVER);
        struct ofp_completion completion = take_completion(request);

        CHECK(!completion.error && completion.length == SHORT);
        take_whole(start_send(&b, text, SHORT, completion.tag), 0);
    }
    return NULL;
}

static void run_askers(void)
{
    pthread_t threads[3];

    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    threads[0] = thread_start("A", ask_partner, (void *)1);
    threads[1] = thread_start("B", ask_partner, (void *)2);
    threads[2] = thread_start("server", answer_all, (void *)2);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    pair_close(&a, &b);
}

const struct program program_askers = {"askers", "fake,shm,tcp,rdm,link", 0, run_askers, NULL};

/* ---------------------------------------------------------------------- what was sent leaves, though nobody calls again */

#define FLOOD 40

static uint8_t flood[FLOOD][SHORT];

static void *receive_flood(void *unused)
{
    uint8_t text[SHORT];

    for (uint32_t i = 0; i < FLOOD; i++) {
        take_whole(start_receive(&b, text, SHORT, 7), SHORT);
        message_check(text, SHORT, i);
    }
    return unused;
}

static void run_flood(void)
{
    ofp_request_t sends[FLOOD];
    pthread_t receiver;

    pair_open(&a, &b, OFP_PROGRESS_AUTO);
    for (uint32_t i = 0; i < FLOOD; i++) {
        message_fill(flood[i], SHORT, i);
        sends[i] = start_send(&a, flood[i], SHORT, 7);
    }
    receiver = thread_start("B", receive_flood, NULL);
    thread_join(receiver);
    for (uint32_t i = 0; i < FLOOD; i++)
        take_whole(sends[i], 0);
    pair_close(&a, &b);
}

/* The budget is long: a send that waits for space is tried again each 200 us, and a round may have space for one alone. */
const struct program program_flood = {"flood", "fake,shm,tcp,rdm,link,link-rdm", 400 * MS, run_flood, NULL};
