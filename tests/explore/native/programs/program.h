/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is run with its threads scheduled, and what programs share: sides that meet, messages that tell whose they
 * are, and checks. A check that fails ends the run with a verdict.
 */
#ifndef EXPLORE_PROGRAM_H
#define EXPLORE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "../schedule.h"
#include "ofipy/ofp.h"
#include "ofipy/request.h"
#include "ofipy/provider.h"

#define MS UINT64_C(1000000)
#define FOR_EVER (-1)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            schedule_fail("wrong: %s:%d: %s", __FILE_NAME__, __LINE__, #condition);                                    \
    } while (0)

/* One side: a domain of its own with queues, a vector and an endpoint. */
struct side {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_av *av;
    struct ofp_eq *eq;
    struct ofp_endpoint *endpoint;
    uint32_t peer;      /* the other side, in `av` */
    const char *infos;  /* the name under which its infos are found; of link the lanes in their order */
    const char *lane;   /* of link, the only one by which it knows the other side; NULL: all */
    const char *device; /* name of the info's domain; NULL: the first one */
};

struct program {
    const char *name;
    const char *carriers; /* names, separated by commas: of providers that are linked in, rdm, or link */
    uint64_t budget;      /* of virtual time, ns; 0: 20 ms */
    void (*run)(void);
    const char *expected; /* the kind of verdict that each run must have, which is none then; NULL: no verdict */
};

extern const struct program *const programs[]; /* NULL at the end */
extern const char *program_carrier;            /* of the run */

/* `infos` and `device` are set, or NULL. */
void side_open(struct side *side, uint32_t progress);
void side_close(struct side *side);
void side_close_rest(struct side *side); /* the endpoint is closed */
/* Before threads are scheduled: open and close one, so that what the process has once is there. */
void side_warm(void);
/* Each knows the other. */
void sides_meet(struct side *a, struct side *b);
/* Two sides that have met. */
void pair_open(struct side *a, struct side *b, uint32_t progress);
/* At once: what one side has sent last, the other one reads while it closes. */
void sides_close(struct side *a, struct side *b);
/* A message each way, then both are closed. */
void pair_close(struct side *a, struct side *b);

/* Compute, as an application between two calls, or return at once: the run draws it. Nobody makes progress meanwhile. */
void compute_a_while(void);
/* Bytes that say which message they are of. */
void message_fill(uint8_t *bytes, uint64_t length, uint32_t number);
void message_check(const uint8_t *bytes, uint64_t length, uint32_t number);
ofp_request_t start_send(struct side *side, const void *bytes, uint64_t length, uint64_t tag);
ofp_request_t start_receive(struct side *side, void *bytes, uint64_t length, uint64_t tag);
struct ofp_completion take_completion(ofp_request_t request);
/* The request must have ended without an error; `length` bytes were received, or it was a send: 0. */
void take_whole(ofp_request_t request, uint64_t length);

pthread_t thread_start(const char *name, void *(*function)(void *argument), void *argument);
void thread_join(pthread_t thread);

#endif
