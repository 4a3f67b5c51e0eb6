/* SPDX-License-Identifier: BSD-3-Clause */
/* The worlds of test_meet_model.c: two sides and their connections, remembered once each, and the verdict on all of them. */
#ifndef MEET_MODEL_H
#define MEET_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "meet/manager.h"

#define CONNECTIONS 6
#define QUEUE 3
#define NONE 0xff

enum packet { NO_PACKET, REQUEST, ACCEPTANCE, LATER, REJECTION, CONFIRMATION, END };

/* What tells one transport from another. */
struct transport {
    enum ofpi_meet_winner winner[2]; /* as each side believes */
    bool confirms;                   /* an acceptance counts when its answer is here */
    bool drains;                     /* what came by a connection is read to its end before it is lost */
    bool withdraws;                  /* a request whose sender has hung up is seen to be void */
    bool persists;                   /* a request that ends without an answer may be made again */
    bool probes;                     /* an end is looked into before it is believed */
    bool transient;                  /* it has an object for the peer only with a connection */
};

/* How often each may happen. */
struct faults {
    uint8_t wants[2], restarts, breaks, shortages, rejections, deadlines, disconnects;
};

struct connection {
    uint8_t opener;          /* NONE: unused */
    uint8_t open[2];         /* of each side's end */
    uint8_t queue[2][QUEUE]; /* to each side */
    uint8_t incarnation;     /* of who opened it */
};

struct side {
    struct ofpi_meeting meeting;
    uint8_t request; /* the connection of our own request; NONE */
    uint8_t used;    /* that is accepted, up, doubted or drained */
    uint8_t incarnation, theirs;
    uint8_t wanted; /* operations wait */
    uint8_t probing;
    uint8_t pausing; /* the core tries again later */
};

struct world {
    struct side side[2];
    struct connection connection[CONNECTIONS];
    struct faults left;
    uint8_t faulted; /* something went wrong on the way here */
};

/* ------------------------------------------------------------------------------------------------------- the search */

#define WORLDS_MAX (1u << 20)
#define STEPS_MAX (6u * WORLDS_MAX)
static struct world *worlds;
static uint32_t *places; /* by hash: 1 + index of a world */
static uint32_t world_count;
static uint32_t (*steps)[2]; /* from, to: those that nothing has to go wrong for */
static uint32_t step_count;
static uint32_t origin; /* the world whose steps are taken */
static const struct transport *transport;
static const char *violation;

static void violated(const char *what)
{
    if (!violation)
        violation = what;
}

static uint32_t remember(const struct world *world)
{
    const uint8_t *bytes = (const uint8_t *)world;
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(*world); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    for (hash %= 2 * WORLDS_MAX; places[hash]; hash = (hash + 1) % (2 * WORLDS_MAX))
        if (memcmp(&worlds[places[hash] - 1], world, sizeof(*world)) == 0)
            return places[hash] - 1;
    assert_true(world_count < WORLDS_MAX);
    worlds[world_count++] = *world;
    places[hash] = world_count;
    return world_count - 1;
}

/* Unused connections all look alike, and those in use stand in one order. */
static void tidy(struct world *world)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *each = &world->connection[i];

        if (each->opener != NONE && !each->open[0] && !each->open[1])
            *each = (struct connection){.opener = NONE};
    }
    for (int i = 0, to = 0; i < CONNECTIONS; i++) {
        if (world->connection[i].opener == NONE)
            continue;
        if (i != to) {
            world->connection[to] = world->connection[i];
            world->connection[i] = (struct connection){.opener = NONE};
            for (int who = 0; who < 2; who++) {
                struct side *side = &world->side[who];

                side->request = side->request == i ? (uint8_t)to : side->request;
                side->used = side->used == i ? (uint8_t)to : side->used;
            }
        }
        to++;
    }
}

static bool in_use(const struct side *side)
{
    return side->meeting.state == OFPI_MEET_UP || side->meeting.state == OFPI_MEET_DOUBTED;
}

static bool has_end(const struct connection *connection, int to)
{
    for (int i = 0; i < QUEUE; i++)
        if (connection->queue[to][i] == END)
            return true;
    return false;
}

static bool is_whole(const struct connection *connection)
{
    return connection->open[0] && connection->open[1] && !has_end(connection, 0) && !has_end(connection, 1);
}

static void check(const struct world *world)
{
    const struct side *sides = world->side;

    for (int who = 0; who < 2; who++) {
        const struct side *side = &sides[who];
        bool has =
            side->meeting.state == OFPI_MEET_ACCEPTED || in_use(side) || side->meeting.state == OFPI_MEET_DRAINING;

        if ((side->meeting.state == OFPI_MEET_CONNECTING) != (side->request != NONE) || has != (side->used != NONE))
            violated("a side that is not where its connections are");
        if (side->wanted && !side->pausing && side->meeting.state == OFPI_MEET_IDLE)
            violated("operations wait for nothing");
    }
    if (in_use(&sides[0]) && in_use(&sides[1]) && sides[0].used != sides[1].used &&
        is_whole(&world->connection[sides[0].used]) && is_whole(&world->connection[sides[1].used]))
        violated("two connections are used");
}

static void go(struct world next, bool fault)
{
    uint32_t to;

    next.faulted |= fault;
    tidy(&next);
    check(&next);
    to = remember(&next);
    if (fault)
        return;
    assert_true(step_count < STEPS_MAX);
    steps[step_count][0] = origin;
    steps[step_count++][1] = to;
}

/* ------------------------------------------------------------------------------------------------------------ one step */

#define CHOICES 16
static struct world now;                                                /* the world that a step changes */
static struct ofp_peer peers[2] = {{.address = "a"}, {.address = "b"}}; /* each side's peer */
static bool faulted;                                                    /* something went wrong within the step */
static struct {
    uint8_t options, chosen;
} choices[CHOICES];
static uint32_t choice_count, choices_made;

/* What may go in several ways within a step: each is taken, one after the other. */
static unsigned choose(unsigned options)
{
    if (choices_made == choice_count) {
        assert_true(choice_count < CHOICES);
        choices[choice_count].options = (uint8_t)options;
        choices[choice_count++].chosen = 0;
    }
    return choices[choices_made++].chosen;
}

static bool choose_differently(void)
{
    choice_count = choices_made;
    while (choice_count && choices[choice_count - 1].chosen + 1 == choices[choice_count - 1].options)
        choice_count--;
    if (!choice_count)
        return false;
    choices[choice_count - 1].chosen++;
    return true;
}

/* Whether one of the faults that are left happens here. */
static bool goes_wrong(uint8_t *left)
{
    if (!*left || !choose(2))
        return false;
    (*left)--;
    faulted = true;
    return true;
}

/* The core: operations of a side wait for a connection. */
static void set_wanted(int who, bool wanted)
{
    now.side[who].wanted = wanted;
    peers[who].state = wanted && !now.side[who].pausing ? OFP_PEER_CONNECTING : OFP_PEER_UNUSED;
}

/* Take a step in each way that it can go. False: it cannot be taken. */
static void take_step(bool (*step)(int who, uint8_t which), int who, uint8_t which)
{
    choice_count = 0;
    do {
        now = worlds[origin];
        faulted = false;
        choices_made = 0;
        set_wanted(0, now.side[0].wanted);
        set_wanted(1, now.side[1].wanted);
        if (step(who, which))
            go(now, faulted);
    } while (choose_differently());
}

/* Take every step that can be taken from a world. */
static void explore(void);

/* ------------------------------------------------------------------------------------------------------- the verdict */

static bool is_at_rest(const struct world *world)
{
    const struct side *sides = world->side;
    int open = 0;

    for (int i = 0; i < CONNECTIONS; i++)
        open += world->connection[i].opener != NONE;
    if (sides[0].meeting.state == OFPI_MEET_IDLE && sides[1].meeting.state == OFPI_MEET_IDLE)
        return !open && world->faulted;
    return in_use(&sides[0]) && in_use(&sides[1]) && sides[0].used == sides[1].used && open == 1;
}

/* Where nothing can happen any more all is well; and from everywhere such a place is reached without any luck or mishap. */
static void check_ends(void)
{
    bool *moves = calloc(world_count, sizeof(*moves)), *ends = calloc(world_count, sizeof(*ends)), changed = true;

    for (uint32_t i = 0; i < step_count; i++)
        moves[steps[i][0]] = true;
    for (uint32_t i = 0; i < world_count; i++) {
        ends[i] = !moves[i];
        if (!moves[i] && !is_at_rest(&worlds[i]))
            violated("it ends otherwise than with one connection, or none");
    }
    while (changed) {
        changed = false;
        for (uint32_t i = step_count; i-- > 0;)
            if (ends[steps[i][1]] && !ends[steps[i][0]])
                ends[steps[i][0]] = changed = true;
    }
    for (uint32_t i = 0; i < world_count; i++)
        if (!ends[i])
            violated("somebody waits for ever");
    free(moves);
    free(ends);
}

/* NULL: all is as it should be. */
static const char *outcome(const struct transport *of, const struct faults *faults)
{
    struct world start;

    worlds = malloc(WORLDS_MAX * sizeof(*worlds));
    places = calloc(2 * WORLDS_MAX, sizeof(*places));
    steps = malloc(STEPS_MAX * sizeof(*steps));
    assert_true(worlds && places && steps);
    memset(&start, 0, sizeof(start));
    for (int who = 0; who < 2; who++)
        start.side[who].request = start.side[who].used = NONE;
    for (int i = 0; i < CONNECTIONS; i++)
        start.connection[i].opener = NONE;
    start.left = *faults;
    transport = of;
    violation = NULL;
    world_count = step_count = 0;
    remember(&start);
    for (origin = 0; origin < world_count && !violation; origin++)
        explore();
    if (!violation)
        check_ends();
    free(worlds);
    free(places);
    free(steps);
    return violation;
}

#endif
