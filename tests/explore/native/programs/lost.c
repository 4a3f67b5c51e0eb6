/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams both ways, in which connections are lost at a step or at a time that the run draws. The stream goes on in the next
 * incarnation: what came is whole, came once and in order; and of what is missing a side was told.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "program.h"
#include "tests/rdm_fake_provider/ofipy_rdm_fake_provider/exchange.h"

#define SHORT 64
#define LONG 16000
#define MESSAGES 8
#define LAST (MESSAGES + 1) /* number of the message after which nothing follows */
#define PASS 100            /* tags of a pass; more than its messages */
#define PASSES 3
#define LOSSES 2
/*
 * With the last message, until it is sent again: at first, and at most. Those that a receiver which does not run leaves lying
 * are fewer than its credit, since one that is announced waits for a receive that nobody posts.
 */
#define PATIENCE (20 * MS)
#define PATIENCE_MAX (320 * MS)
#define STEPS 160 /* of rdmfake's lines in a run, about */

/* One way. Its sender and its receiver are threads; what both use is atomic, and a receiver's or a sender's otherwise. */
struct stream {
    struct side *from, *to;
    uint64_t lengths[MESSAGES + 2];
    bool failed[MESSAGES + 2];
    uint32_t late;            /* messages that came after later ones */
    uint32_t highest;         /* number of a message that arrived */
    uint32_t broken_receives; /* that ended with an error: each stands for a message at most */
    _Atomic bool has_ended;   /* the last message has come */
    _Atomic bool has_left;    /* the sender waits for nothing any more */
    uint8_t sent[MESSAGES + 2][LONG], received[LONG];
};

static struct side a, b;
static uint32_t pass; /* 1: connections are lost; 2: none is; 0: not begun */
static struct stream streams[2];
static bool came[2][PASSES][MESSAGES + 2]; /* by way and pass, which messages arrived */

/* ------------------------------------------------------------------------------------------------------------ losing */

static bool is_carried_over(const char *provider)
{
    return strcmp(program_carrier, provider) == 0 ||
           (strcmp(provider, "tcp") == 0 && strcmp(program_carrier, "link") == 0) ||
           (strcmp(provider, "rdm") == 0 && strcmp(program_carrier, "link-rdm") == 0);
}

/* As a broken network does: end every connection over tcp. */
static void end_connections(void)
{
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof(address);

        if (getpeername(fd, (struct sockaddr *)&address, &length) == 0 &&
            (address.ss_family == AF_INET || address.ss_family == AF_INET6))
            shutdown(fd, SHUT_RDWR);
    }
}

static void *lose_connections(void *unused)
{
    for (uint64_t left = schedule_draw(LOSSES + 1); left; left--) {
        /* As often within a handshake, of microseconds, as later. */
        struct timespec pause = {.tv_nsec = (long)schedule_draw(UINT64_C(1) << schedule_draw(19))};

        nanosleep(&pause, NULL);
        end_connections();
    }
    return unused;
}

/* ----------------------------------------------------------------------------------------------------------- streams */

/* The last message of the streams before may have come twice: tags of one pass differ from those of the other. */
static uint64_t tag_of(uint32_t number) { return pass * PASS + number; }

static ofp_request_t start_number(struct stream *stream, uint32_t number)
{
    struct ofp_operation send = {.op = OFP_TSEND,
                                 .peer = stream->from->peer,
                                 .tag = tag_of(number),
                                 .offset = (uint64_t)(uintptr_t)stream->sent[number],
                                 .length = stream->lengths[number]};
    ofp_request_t request;

    while ((request = ofp_request_start(stream->from->endpoint, &send, 0, FOR_EVER)) == -EAGAIN || request == -EINTR)
        ;
    /* An operation that is refused is one that has failed. */
    if (request < 0)
        stream->failed[number] = true;
    return request < 0 ? 0 : request;
}

static void *send_stream(void *of)
{
    struct stream *stream = of;
    ofp_request_t sends[MESSAGES + 1] = {0}, last = 0;
    int64_t patience = PATIENCE;

    for (uint32_t i = 1; i <= MESSAGES; i++)
        sends[i] = start_number(stream, i);
    for (uint32_t i = 1; i <= MESSAGES; i++)
        if (sends[i] && take_completion(sends[i]).error)
            stream->failed[i] = true;
    /* The last one may be lost with its connection, so until it has come it is sent again. */
    while (!stream->has_ended) {
        struct ofp_completion completion;
        struct timespec pause = {.tv_nsec = (long)patience};

        if (!last)
            last = start_number(stream, LAST);
        if (last && ofp_request_take(last, patience, &completion) == 1)
            last = 0;
        if (!last && !stream->has_ended)
            nanosleep(&pause, NULL);
        /* With manual progress nothing else may tell this side that the connection has ended. */
        ofp_domain_progress(stream->from->domain);
        if ((uint64_t)patience < PATIENCE_MAX)
            patience *= 2;
    }
    if (last)
        take_completion(last);
    stream->has_left = true;
    return NULL;
}

/*
 * Whether it was the last one. Messages that a lane of link has brought before its connection was lost may be read after
 * those that another lane brings: then they lie in another incarnation, which check_stream expects.
 */
static bool note_arrival(struct stream *stream, const struct ofp_completion *completion)
{
    uint32_t number = (uint32_t)completion->tag % PASS, of = (uint32_t)completion->tag / PASS;
    bool *arrived = came[stream - streams][of % PASSES];

    if (number < 1 || number > LAST || of < 1 || of > pass || completion->length != stream->lengths[number])
        schedule_fail("wrong: a message has the tag %llu and %llu bytes", (unsigned long long)completion->tag,
                      (unsigned long long)completion->length);
    message_check(stream->received, completion->length, number + (stream == &streams[1] ? 100 : 0));
    /* The last one is sent again until it has come. */
    if (arrived[number] && number != LAST)
        schedule_fail("wrong: message %u of pass %u comes twice", number, of);
    arrived[number] = true;
    if (of == pass && number > stream->highest)
        stream->highest = number;
    else if (number != LAST)
        stream->late++;
    return of == pass && number == LAST;
}

static void *receive_stream(void *of)
{
    struct stream *stream = of;
    struct ofp_operation receive = {.op = OFP_TRECV,
                                    .peer = stream->to->peer,
                                    .ignore = UINT64_MAX,
                                    .offset = (uint64_t)(uintptr_t)stream->received,
                                    .length = LONG};

    while (!stream->has_ended) {
        ofp_request_t request = ofp_request_start(stream->to->endpoint, &receive, 0, FOR_EVER);
        struct ofp_completion completion;

        if (request == -EAGAIN || request == -EINTR)
            continue;
        CHECK(request > 0);
        completion = take_completion(request);
        if (completion.error)
            stream->broken_receives++;
        else if (note_arrival(stream, &completion))
            stream->has_ended = true;
    }
    /* The last message may be under way once more. With manual progress nobody else lets it arrive. */
    while (!stream->has_left) {
        struct timespec pause = {.tv_nsec = PATIENCE};

        nanosleep(&pause, NULL);
        ofp_domain_progress(stream->to->domain);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------- checks */

static uint32_t count_losses(struct side *side)
{
    struct ofp_event event;
    uint8_t data[OFP_EVENT_DATA_MAX];
    uint32_t count = 0;

    while (ofp_eq_read(side->eq, &event, data) == 1)
        count += event.kind == OFP_EVENT_PEER_LOST;
    return count;
}

/* Missing messages must have been lost with a connection, and one of the sides must have been told of its end. */
static void check_stream(const struct stream *stream, const uint32_t losses[2])
{
    const char *name = stream->from == &a ? "A" : "B";
    uint32_t missing = 0, failed = 0;

    for (uint32_t i = 1; i <= MESSAGES; i++) {
        missing += !came[stream - streams][pass][i];
        failed += stream->failed[i];
    }
    if (missing > failed && !losses[0] && !losses[1])
        schedule_fail("wrong: lost message: %u of %s's are missing, %u failed, and nobody was told of a loss", missing,
                      name, failed);
    if (stream->late && (strncmp(program_carrier, "link", 4) != 0 || !losses[stream->to == &b]))
        schedule_fail("wrong: order: %u of %s's came after later ones, within an incarnation", stream->late, name);
}

static void begin_streams(void)
{
    for (int way = 0; way < 2; way++) {
        struct stream *stream = &streams[way];

        *stream = (struct stream){.from = way ? &b : &a, .to = way ? &a : &b};
        for (uint32_t i = 1; i <= LAST; i++) {
            stream->lengths[i] = i % 3 == 2 ? LONG : SHORT;
            message_fill(stream->sent[i], stream->lengths[i], i + 100 * (uint32_t)way);
        }
    }
}

static void run_streams(bool loses)
{
    pthread_t threads[5];
    int count = 0;

    pass++;
    begin_streams();
    if (loses && is_carried_over("rdm"))
        rdmfake_lose_at(1 + schedule_draw(STEPS));
    if (loses && is_carried_over("tcp"))
        threads[count++] = thread_start("network", lose_connections, NULL);
    for (int way = 0; way < 2; way++) {
        threads[count++] = thread_start(way ? "send B" : "send A", send_stream, &streams[way]);
        threads[count++] = thread_start(way ? "receive A" : "receive B", receive_stream, &streams[way]);
    }
    while (count)
        thread_join(threads[--count]);
    rdmfake_lose_at(0);
}

static void run_lost(void)
{
    uint32_t losses[2];

    /* While it probes, tcp looks at what waits each 200 us: through seconds of virtual time. */
    ofp_param_set("SPIN_TIME", "0");
    pair_open(&a, &b, schedule_draw(2) ? OFP_PROGRESS_AUTO : OFP_PROGRESS_MANUAL);
    run_streams(true);
    losses[0] = count_losses(&a);
    losses[1] = count_losses(&b);
    for (int way = 0; way < 2; way++)
        check_stream(&streams[way], losses);
    /* Nothing more gets lost, and the streams go on. */
    run_streams(false);
    sides_close(&a, &b);
}

/* A second attempt to connect follows the first after a time that grows. */
const struct program program_lost = {"lost", "tcp,rdm,link,link-rdm", 4000 * MS, run_lost, NULL};
