/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of a run: the strategy that the seed draws, and by that who runs; or the decisions of a trace. */
#include <stdio.h>
#include <string.h>

#include "schedule_thread.h"

#define CHANGES_MAX 3
#define FOCUS_PARTS 8 /* of all functions one part is drawn */
#define MEET_COUNT 12
#define PAUSE_IN 8                    /* of so many calls one comes after a pause */
#define PAUSE_SHORTEST UINT64_C(1000) /* ns */
#define PAUSE_LENGTHS 13              /* each twice the one before */
#define MEET_FOR UINT64_C(4000000000) /* ns: so long a thread is held at most */
/* Points after which each thread has the same chance, so that what goes on for ever is a fault. */
#define FAIR_AFTER 30000

/* What the run's strategy has drawn. */
static struct {
    enum schedule_strategy kind;
    uint64_t random;
    uint32_t change_count, low; /* `low`: the priority that the next demoted thread gets */
    uint64_t changes[CHANGES_MAX];
    uint32_t one_in, focus; /* SCHEDULE_CHANCE: of so many points one */
    uint64_t withhold_at;   /* the point at which the running thread is withheld; never: 0 */
    uint64_t withhold_for;  /* ns */
    bool is_withheld;       /* it was */
    struct schedule_thread *held;
    uint32_t held_left, met_left; /* SCHEDULE_MEET: new places until both places */
    bool holds_at_write;          /* the first place is before a write: others see the old state for long */
} plan;

static uint64_t world; /* what the program draws, and the kernel's chance */
static struct {
    uint64_t random;
    bool has_pauses, has_small_bounds;
} pace;
static uint64_t withheld_end;

/* ----------------------------------------------------------------------------------------------------------- chance */

static uint64_t draw_from(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The strategy draws from its own numbers, so that the program draws the same ones when a trace is followed. */
static uint64_t draw(void) { return draw_from(&plan.random); }

uint64_t schedule_draw(uint64_t limit) { return limit ? draw_from(&world) % limit : 0; }

uint64_t schedule_draw_pause(void)
{
    if (!pace.has_pauses || draw_from(&pace.random) % PAUSE_IN)
        return 0;
    /* As often short as long: some fall within a burst of another thread, and in some a helper thread falls asleep. */
    return PAUSE_SHORTEST << draw_from(&pace.random) % PAUSE_LENGTHS;
}

int schedule_draw_bound(int most) { return pace.has_small_bounds ? 1 : most; }

/* Of which kind the run is, and where it preempts. The first runs of a program are so short that few points are enough. */
void schedule_draw_plan(uint64_t seed)
{
    uint64_t kind, reach;

    plan.random = seed;
    world = ~seed;
    pace.random = seed * UINT64_C(0x2545f4914f6cdd1d);
    pace.has_pauses = draw_from(&pace.random) % 2;
    pace.has_small_bounds = draw_from(&pace.random) % 2;
    plan.low = THREADS_MAX;
    kind = draw() % 32;
    reach = UINT64_C(1) << (6 + draw() % 8);
    if (schedule_board->given_count) {
        plan.kind = SCHEDULE_TRACE;
        return;
    }
    plan.kind = kind < 8    ? SCHEDULE_PCT
                : kind < 12 ? SCHEDULE_FOCUS
                : kind < 15 ? SCHEDULE_CHANCE
                : kind < 16 ? SCHEDULE_DEFAULT
                            : SCHEDULE_MEET;
    plan.focus = (uint32_t)draw();
    plan.change_count = (uint32_t)(draw() % (CHANGES_MAX + 1));
    for (uint32_t i = 0; i < plan.change_count; i++)
        plan.changes[i] = 1 + draw() % reach;
    plan.one_in = (uint32_t)(2u << draw() % 6);
    plan.withhold_at = draw() % 4 ? 0 : 1 + draw() % reach;
    plan.withhold_for = UINT64_C(1000000) << draw() % 13;
    plan.holds_at_write = draw() % 4;
    /* Writes are fewer. */
    plan.held_left = 1 + (uint32_t)(draw() % (8u << draw() % (plan.holds_at_write ? 3 : 5)));
    plan.met_left = 1 + (uint32_t)(draw() % MEET_COUNT);
    if (plan.kind == SCHEDULE_MEET)
        plan.withhold_at = 0;
}

uint32_t schedule_hash(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

uint32_t schedule_draw_priority(void) { return (uint32_t)(draw() % 1024); }

uint64_t schedule_withheld_end(void) { return withheld_end; }

/* ------------------------------------------------------------------------------------------------------------ choosing */

/* Without a decision: the running thread, unless it yields or cannot; then the next one. NULL: no thread can run. */
static struct schedule_thread *choose_default(bool yields)
{
    for (uint32_t i = yields ? 1 : 0; i < schedule_thread_count + (yields ? 1 : 0); i++) {
        struct schedule_thread *thread = &schedule_threads[(schedule_current + i) % schedule_thread_count];

        if (schedule_can_run(thread))
            return thread;
    }
    return NULL;
}

static struct schedule_thread *choose_by_priority(void)
{
    uint32_t tried = 0;

    for (uint32_t i = 0; i < schedule_thread_count; i++) {
        struct schedule_thread *best = NULL;

        for (uint32_t j = 0; j < schedule_thread_count; j++)
            if (!(tried & 1u << j) && (!best || schedule_threads[j].priority > best->priority))
                best = &schedule_threads[j];
        if (schedule_can_run(best))
            return best;
        tried |= 1u << (best - schedule_threads);
    }
    return NULL;
}

static struct schedule_thread *choose_by_chance(void)
{
    struct schedule_thread *able[THREADS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < schedule_thread_count; i++)
        if (schedule_can_run(&schedule_threads[i]))
            able[count++] = &schedule_threads[i];
    return count ? able[draw() % count] : NULL;
}

static struct schedule_decision *find_given(struct schedule_thread *self, const char *function, uint32_t occurrence)
{
    for (uint32_t i = 0; i < schedule_board->given_count; i++) {
        struct schedule_decision *given = &schedule_board->given[i];

        if (!given->used && given->occurrence == occurrence && strcmp(given->thread, self->name) == 0 &&
            strncmp(given->function, function, SCHEDULE_NAME - 1) == 0)
            return given;
    }
    return NULL;
}

struct schedule_thread *schedule_find_by_name(const char *name)
{
    for (uint32_t i = 0; i < schedule_thread_count; i++)
        if (strcmp(schedule_threads[i].name, name) == 0)
            return &schedule_threads[i];
    return NULL;
}

/* A decision "withhold 4" is of the thread that has reached the place: it does not run for so many ms. */
static void withhold(struct schedule_thread *thread, uint64_t duration)
{
    thread->withheld_until = withheld_end = schedule_now + duration;
    /* What waits for this thread may take so much longer. */
    schedule_board->budget_ns += duration;
}

/* Earlier than its time. */
static void release_withheld(struct schedule_thread *thread)
{
    if (thread->withheld_until <= schedule_now)
        return;
    schedule_board->budget_ns -= thread->withheld_until - schedule_now;
    thread->withheld_until = withheld_end = schedule_now;
}

static void decide(struct schedule_thread *self, const char *function, uint32_t occurrence, const char *next)
{
    struct schedule_decision *made = &schedule_board->decisions[schedule_board->decision_count];

    if (schedule_board->decision_count == SCHEDULE_DECISIONS)
        return;
    schedule_board->decision_count++;
    *made = (struct schedule_decision){.occurrence = occurrence, .used = 1};
    memcpy(made->thread, self->name, sizeof(made->thread));
    strncpy(made->function, function, SCHEDULE_NAME - 1);
    strncpy(made->next, next, sizeof(made->next) - 1);
}

static struct schedule_thread *follow_trace(struct schedule_thread *self, const char *function, uint32_t occurrence,
                                            bool yields)
{
    struct schedule_decision *given = find_given(self, function, occurrence);
    struct schedule_thread *next;
    unsigned long long duration;

    if (given && sscanf(given->next, "withhold %llu", &duration) == 1) {
        given->used = 1;
        decide(self, function, occurrence, given->next);
        withhold(self, duration * 1000000);
        given = find_given(self, function, occurrence);
    }
    next = given ? schedule_find_by_name(given->next) : NULL;
    /* Only a meeting lets a thread run that is withheld. */
    if (next && next->wait != ENDED)
        release_withheld(next);
    if (!next || !schedule_can_run(next))
        return choose_default(yields);
    given->used = 1;
    return next;
}

/* At points of few functions, which the run has drawn, half of the time; else at few points, which it has drawn. */
static bool is_change(const char *function, uint64_t step)
{
    if (plan.kind == SCHEDULE_FOCUS)
        return (schedule_hash(function) ^ plan.focus) % FOCUS_PARTS == 0 && draw() % 2;
    for (uint32_t i = 0; i < plan.change_count; i++)
        if (plan.changes[i] == step)
            return true;
    return false;
}

static void maybe_withhold(struct schedule_thread *self, const char *function, uint32_t occurrence)
{
    char text[32];

    if (plan.is_withheld || !plan.withhold_at || schedule_board->steps < plan.withhold_at)
        return;
    plan.is_withheld = true;
    snprintf(text, sizeof(text), "withhold %llu", (unsigned long long)(plan.withhold_for / 1000000));
    decide(self, function, occurrence, text);
    withhold(self, plan.withhold_for);
}

/*
 * Hold the running thread at a place that is new to it, until another thread has reached so many places that are new to that
 * one; there the held one goes on. While a thread is held others go ways that they seldom go, and each such window of
 * two threads is one draw.
 */
static struct schedule_thread *hold_until_meeting(struct schedule_thread *self, const char *function,
                                                  uint32_t occurrence, bool yields)
{
    char text[32];

    if (!plan.held && self->wait == RUNS && occurrence <= 2 && (schedule_is_write || !plan.holds_at_write) &&
        --plan.held_left == 0) {
        plan.held = self;
        snprintf(text, sizeof(text), "withhold %llu", (unsigned long long)(MEET_FOR / 1000000));
        decide(self, function, occurrence, text);
        withhold(self, MEET_FOR);
    } else if (plan.held && plan.held != self && plan.met_left && occurrence == 1 && --plan.met_left == 0 &&
               plan.held->withheld_until > schedule_now) {
        release_withheld(plan.held);
        return plan.held;
    }
    return choose_default(yields);
}

static struct schedule_thread *choose_planned(struct schedule_thread *self, const char *function, uint32_t occurrence,
                                              bool yields)
{
    uint64_t step = schedule_board->steps;

    if (plan.kind == SCHEDULE_TRACE)
        return follow_trace(self, function, occurrence, yields);
    maybe_withhold(self, function, occurrence);
    if (plan.kind == SCHEDULE_DEFAULT)
        return choose_default(yields);
    if (step > FAIR_AFTER && plan.held && plan.held->withheld_until > schedule_now) {
        /* The held thread goes on: others that poll for what it does would be taken for a livelock. */
        release_withheld(plan.held);
        return plan.held;
    }
    if (step > FAIR_AFTER)
        return choose_by_chance();
    if (plan.kind == SCHEDULE_MEET)
        return hold_until_meeting(self, function, occurrence, yields);
    if (plan.kind == SCHEDULE_CHANCE)
        return draw() % plan.one_in && !yields ? choose_default(false) : choose_by_chance();
    if (yields || is_change(function, step))
        self->priority = plan.low ? --plan.low : 0;
    return choose_by_priority();
}

struct schedule_thread *schedule_choose(struct schedule_thread *self, const char *function, uint32_t occurrence,
                                        bool yields)
{
    struct schedule_thread *next = choose_planned(self, function, occurrence, yields);

    if (next && next != choose_default(yields))
        decide(self, function, occurrence, next->name);
    return next;
}
