/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message is the time from its beginning, or from the end of the one before it where that is later, to its own end: of
 * messages that are under way together each costs what it adds. A message of the pipeline does not count where the message that ended
 * before it took another copy method: its fragments arrived while the receiver copied that message.
 */
#include "message/cost.h"

#include <stdlib.h>

/* Classes of sizes: powers of two, from 4 KiB to 128 MiB and more. */
#define FIRST_CLASS 12
#define CLASSES 16
/* A message is alone that comes later after the last one than so many messages take. */
#define ALONE 4
/* Bytes that a copy method moves in a nanosecond, as long as its cost is not known. */
#define GUESSED_RATE 10

struct shm_costs {
    struct shm_choice choices[2][CLASSES]; /* of memory elsewhere, and in an arena */
    uint32_t under_way;                    /* messages */
    uint32_t tried;                        /* of them, those of a trial of the pipeline */
    enum ofp_moved ended_by;               /* the copy method of the last message that ended */
    uint64_t ended;                        /* when it ended; 0: none has */
};

static struct shm_choice *find_choice(struct shm_costs *costs, uint64_t length, bool arena)
{
    uint32_t class = 63 - (uint32_t)__builtin_clzll(length | UINT64_C(1) << FIRST_CLASS) - FIRST_CLASS;

    return &costs->choices[arena][class < CLASSES ? class : CLASSES - 1];
}

static bool is_pipeline_trial(const struct shm_cost *cost) { return cost->trial && cost->way == OFP_MOVED_PIPELINED; }

static bool is_message_alone(const struct shm_costs *costs, const struct shm_cost *cost)
{
    return !costs->under_way &&
           cost->begun - costs->ended > ALONE * shm_choice_expect(cost->choice, cost->choice->current, cost->length);
}

/* A message that is alone does not wake a sleeping sender for the pipeline: attach needs nobody. */
static uint32_t leave_out_pipeline(uint32_t ways)
{
    uint32_t others = ways & ~SHM_WAY_BIT(OFP_MOVED_PIPELINED);

    return others ? others : ways;
}

enum ofp_moved shm_cost_begin(struct shm_link *link, struct shm_cost *cost, uint64_t length, bool arena, bool sleeps,
                              uint32_t ways)
{
    struct shm_costs *costs = link->costs;
    bool alone;

    if (!costs)
        costs = link->costs = calloc(1, sizeof(*costs));
    /* Out of memory: the first of the ways. */
    if (!costs) {
        *cost = (struct shm_cost){.way = (enum ofp_moved)__builtin_ctz(ways)};
        return cost->way;
    }
    *cost = (struct shm_cost){.choice = find_choice(costs, length, arena), .begun = shm_core->now(), .length = length};
    alone = is_message_alone(costs, cost);
    if (alone && sleeps)
        ways = leave_out_pipeline(ways);
    cost->way = shm_choice_take(cost->choice, ways, alone, &cost->trial);
    costs->tried += is_pipeline_trial(cost);
    costs->under_way++;
    return cost->way;
}

void shm_cost_end(struct shm_link *link, struct shm_cost *cost)
{
    struct shm_costs *costs = link->costs;
    uint64_t now, since;

    if (!cost->choice)
        return;
    now = shm_core->now();
    since = costs->ended > cost->begun ? costs->ended : cost->begun;
    if (cost->way != OFP_MOVED_PIPELINED || costs->ended_by == OFP_MOVED_PIPELINED || since == cost->begun)
        shm_choice_learn(cost->choice, cost->way, cost->trial, cost->length, now - since);
    costs->ended = now;
    costs->ended_by = cost->way;
    shm_cost_drop(link, cost);
}

void shm_cost_drop(struct shm_link *link, struct shm_cost *cost)
{
    struct shm_costs *costs = link->costs;

    if (!cost->choice)
        return;
    cost->choice = NULL;
    costs->under_way--;
    costs->tried -= is_pipeline_trial(cost);
}

uint64_t shm_cost_expect(const struct shm_cost *cost, enum ofp_moved way, uint64_t length)
{
    uint64_t expected = cost->choice ? shm_choice_expect(cost->choice, way, length) : 0;

    return expected ? expected : length / GUESSED_RATE;
}

bool shm_cost_must_wait(const struct shm_link *link, uint64_t length, bool arena)
{
    return link->costs && link->costs->tried && !shm_choice_goes_on(find_choice(link->costs, length, arena));
}
