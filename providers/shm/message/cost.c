/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message is the time from its start, or from the end of the previous message if that is later, to its
 * own end: messages in flight together each cost what they add. A pipelined message does not count if the message that
 * ended before it used another copy method: its fragments arrived while the receiver copied that message.
 */
#include "message/cost.h"

#include <stdlib.h>

/* Classes of sizes: powers of two, from 4 KiB to 128 MiB and more. */
#define FIRST_CLASS 12
#define CLASSES 16
/* A message is alone if it starts more than the time of ALONE messages after the end of the last one. */
#define ALONE 4
/* Bytes that a copy method moves in a nanosecond, as long as its cost is not known. */
#define GUESSED_RATE 10

/*
 * Messages that follow each other in the pipeline cost less than a single one, so its trial has several: the first one
 * may wake the sender.
 */
static const struct shm_choice_trials trials = {
    .lengths = {[OFP_MOVED_MAPPED] = 1, [OFP_MOVED_PIPELINED] = 3, [OFP_MOVED_ATTACHED] = 1}};

_Static_assert(OFP_MOVED_WAYS == SHM_METHODS_MAX, "a method of the choice for each way");

struct shm_costs {
    struct shm_choice choices[2][CLASSES]; /* of memory elsewhere, and in an arena */
    uint32_t under_way;                    /* messages */
    uint32_t tried;                        /* messages in flight that belong to a trial of the pipeline */
    enum ofp_moved ended_by;               /* the copy method of the last message that ended */
    uint64_t ended;                        /* when that message ended; 0: none has ended */
};

static uint32_t compute_class(uint64_t length)
{
    uint32_t class = 63 - (uint32_t)__builtin_clzll(length | UINT64_C(1) << FIRST_CLASS) - FIRST_CLASS;

    return class < CLASSES ? class : CLASSES - 1;
}

static struct shm_choice *find_choice(struct shm_costs *costs, uint64_t length, bool arena)
{
    return &costs->choices[arena][compute_class(length)];
}

static bool is_pipeline_trial(const struct shm_cost *cost)
{
    return cost->trial && cost->method == OFP_MOVED_PIPELINED;
}

static bool is_message_alone(const struct shm_costs *costs, const struct shm_choice *choice, uint64_t length,
                             uint64_t now)
{
    return !costs->under_way && now - costs->ended > ALONE * shm_choice_compute_cost(choice, choice->current, length);
}

/* A message that is alone does not wake a sleeping sender for the pipeline: attach needs no sender. */
static uint32_t choose_methods(uint32_t methods, bool alone, bool sleeps)
{
    uint32_t others = methods & ~SHM_METHOD_BIT(OFP_MOVED_PIPELINED);

    return alone && sleeps && others ? others : methods;
}

enum ofp_moved shm_cost_start(struct shm_link *link, struct shm_cost *cost, uint64_t length, bool arena, bool sleeps,
                              uint32_t methods)
{
    struct shm_costs *costs = link->costs;
    bool alone;

    if (!costs)
        costs = link->costs = calloc(1, sizeof(*costs));
    /* Out of memory: use the first method. */
    if (!costs) {
        *cost = (struct shm_cost){.method = (enum ofp_moved)__builtin_ctz(methods)};
        return cost->method;
    }
    *cost = (struct shm_cost){.choice = find_choice(costs, length, arena), .begun = shm_core->now(), .length = length};
    alone = is_message_alone(costs, cost->choice, length, cost->begun);
    cost->method = (enum ofp_moved)shm_choice_choose_method(
        cost->choice, &trials, choose_methods(methods, alone, sleeps), alone, &cost->trial);
    costs->tried += is_pipeline_trial(cost);
    costs->under_way++;
    return cost->method;
}

enum ofp_moved shm_cost_find_method(const struct shm_link *link, uint64_t length, bool arena, bool sleeps,
                                    uint32_t methods, uint64_t *expected)
{
    static const struct shm_costs none;
    const struct shm_costs *costs = link->costs ? link->costs : &none;
    const struct shm_choice *choice = &costs->choices[arena][compute_class(length)];
    bool alone = is_message_alone(costs, choice, length, shm_core->now());
    uint32_t method = shm_choice_find_method(choice, choose_methods(methods, alone, sleeps));

    *expected = shm_choice_compute_cost(choice, method, length);
    /* A short message rounds down to nothing, though its cost is known. */
    if (!*expected && choice->costs[method][0])
        *expected = 1;
    return (enum ofp_moved)method;
}

void shm_cost_end(struct shm_link *link, struct shm_cost *cost)
{
    struct shm_costs *costs = link->costs;
    uint64_t now, since;

    if (!cost->choice)
        return;
    now = shm_core->now();
    since = costs->ended > cost->begun ? costs->ended : cost->begun;
    if (cost->method != OFP_MOVED_PIPELINED || costs->ended_by == OFP_MOVED_PIPELINED || since == cost->begun)
        shm_choice_store_cost(cost->choice, cost->method, cost->trial, cost->length, now - since);
    costs->ended = now;
    costs->ended_by = cost->method;
    shm_cost_discard(link, cost);
}

void shm_cost_discard(struct shm_link *link, struct shm_cost *cost)
{
    struct shm_costs *costs = link->costs;

    if (!cost->choice)
        return;
    cost->choice = NULL;
    OFP_CHECK(costs->under_way > 0 && costs->tried <= costs->under_way);
    costs->under_way--;
    costs->tried -= is_pipeline_trial(cost);
}

uint64_t shm_cost_compute(const struct shm_cost *cost, enum ofp_moved method, uint64_t length)
{
    uint64_t expected = cost->choice ? shm_choice_compute_cost(cost->choice, method, length) : 0;

    return expected ? expected : length / GUESSED_RATE;
}

bool shm_cost_needs_deferral(const struct shm_link *link, uint64_t length, bool arena)
{
    return link->costs && link->costs->tried && !shm_choice_has_open_trial(find_choice(link->costs, length, arena));
}
