/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of the way that moves a large message, fed with what the ways cost on two kinds of processor: 1 MiB and 64 KiB, in
 * microseconds, as `fabtests compare --case shm-bandwidth` took them. The clock is the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/choice.h"
#include "ofipy/objects.h"

#define ALL                                                                                                            \
    (SHM_METHOD_BIT(OFP_MOVED_MAPPED) | SHM_METHOD_BIT(OFP_MOVED_PIPELINED) | SHM_METHOD_BIT(OFP_MOVED_ATTACHED))
#define UNMAPPED (SHM_METHOD_BIT(OFP_MOVED_PIPELINED) | SHM_METHOD_BIT(OFP_MOVED_ATTACHED))
#define MIB (UINT64_C(1) << 20)

/* As message/cost.c has them. */
static const struct shm_choice_trials trials = {
    .lengths = {[OFP_MOVED_MAPPED] = 1, [OFP_MOVED_PIPELINED] = 3, [OFP_MOVED_ATTACHED] = 1}};

/* ns of a message by each way. */
struct costs {
    uint64_t length;
    uint64_t of[OFP_MOVED_WAYS];
    uint64_t first; /* of a message in the pipeline that follows another way's; 0: as of the others */
};

/* Intel, Sapphire Rapids: attach is faster than the pipeline. */
static const struct costs intel_64k = {65536, {3000, 7200, 3020}, 0}, intel_1m = {MIB, {25000, 90000, 61000}, 0};
/* Memory that was just written: mapped memory is fetched from the other core's cache. */
static const struct costs intel_1m_written = {MIB, {123000, 126000, 116000}, 0};
/* AMD, EPYC: the pipeline is 2.74 times as fast as attach. */
static const struct costs amd_64k = {65536, {1500, 2200, 6030}, 0}, amd_1m = {MIB, {30000, 34000, 93000}, 0};
/* Beside a neighbour that fills the memory bus, or on one core with the sender. */
/* The same with arrays as a program sends them: a message alone in the pipeline takes longer than attach, those that follow less. */
static const struct costs amd_1m_stream = {MIB, {30000, 60000, 95000}, 120000};
/* 64 KiB, the first message of the pipeline meets a sender that sleeps. */
static const struct costs amd_64k_asleep = {65536, {1500, 1500, 5700}, 20000};
static const struct costs contended_1m = {MIB, {100000, 900000, 140000}, 0};

struct run {
    struct shm_choice choice;
    uint64_t random;
    enum ofp_moved last;
    uint64_t taken[OFP_MOVED_WAYS], trials;
    double spent, least, tried, lost; /* ns: of all; had each taken the fastest way; of trials, and what they lost */
};

/* 0.8 to 1.2 times the cost, and now and then, as on any machine, a message during which the process did not run. */
static uint64_t add_noise(struct run *run, uint64_t cost)
{
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if ((run->random >> 33) % 500 == 0)
        return cost + 4000000;
    return cost * (800 + (run->random >> 40) % 401) / 1000;
}

static uint64_t find_fastest(const struct costs *costs, uint32_t ways)
{
    uint64_t least = UINT64_MAX;

    for (int way = 0; way < OFP_MOVED_WAYS; way++)
        if (ways & SHM_METHOD_BIT(way) && costs->of[way] < least)
            least = costs->of[way];
    return least;
}

static void move_message(struct run *run, const struct costs *costs, uint32_t ways, bool alone)
{
    bool trial;
    enum ofp_moved way = (enum ofp_moved)shm_choice_choose_method(&run->choice, &trials, ways, alone, &trial);
    bool first = way == OFP_MOVED_PIPELINED && run->last != way && costs->first;
    uint64_t cost = first ? costs->first : costs->of[way], least = find_fastest(costs, ways);

    assert_true(ways & SHM_METHOD_BIT(way));
    run->last = way;
    run->taken[way]++;
    run->trials += trial;
    run->spent += (double)cost;
    run->least += (double)least;
    if (trial && cost > least)
        run->lost += (double)(cost - least);
    shm_choice_store_cost(&run->choice, way, trial, costs->length, add_noise(run, cost));
}

static void move_messages(struct run *run, const struct costs *costs, uint32_t ways, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        move_message(run, costs, ways, false);
}

/* The share of messages that take a way, of the next `count`. */
static double measure_share(struct run *run, const struct costs *costs, uint32_t ways, enum ofp_moved way,
                            uint32_t count)
{
    uint64_t before = run->taken[way];

    move_messages(run, costs, ways, count);
    return (double)(run->taken[way] - before) / count;
}

static void the_fastest_way_is_taken(void **state)
{
    static const struct {
        const struct costs *costs;
        uint32_t ways;
        enum ofp_moved best;
    } cases[] = {
        {&intel_64k, UNMAPPED, OFP_MOVED_ATTACHED},      {&intel_1m, UNMAPPED, OFP_MOVED_ATTACHED},
        {&amd_64k, UNMAPPED, OFP_MOVED_PIPELINED},       {&amd_1m, UNMAPPED, OFP_MOVED_PIPELINED},
        {&amd_1m_stream, UNMAPPED, OFP_MOVED_PIPELINED}, {&intel_1m, ALL, OFP_MOVED_MAPPED},
        {&contended_1m, UNMAPPED, OFP_MOVED_ATTACHED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = {.random = i + 1};

        move_messages(&run, cases[i].costs, cases[i].ways, 64);
        assert_true(measure_share(&run, cases[i].costs, cases[i].ways, cases[i].best, 2000) > 0.93);
    }
}

static void trials_lose_little(void **state)
{
    static const struct costs *const all[] = {&intel_64k, &intel_1m, &intel_1m_written,
                                              &amd_64k,   &amd_1m,   &contended_1m};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct run run = {.random = 77 + i};

        move_messages(&run, all[i], ALL, 5000);
        assert_true(run.trials > 20);
        /* 2 % and the noise of the costs that the rule sees. */
        assert_true(run.lost < 0.024 * run.spent);
        assert_true(run.spent < 1.06 * run.least);
    }
}

static void a_change_is_followed(void **state)
{
    static const struct {
        const struct costs *before, *after;
        uint32_t ways;
        enum ofp_moved best;
        uint32_t within; /* messages */
    } cases[] = {
        /* The way in use has become slow. */
        {&amd_1m, &contended_1m, UNMAPPED, OFP_MOVED_ATTACHED, 20},
        /* Another has become faster: found by a trial, sooner where it was not much slower before. */
        {&contended_1m, &amd_1m, UNMAPPED, OFP_MOVED_PIPELINED, 400},
        {&intel_1m, &amd_1m, UNMAPPED, OFP_MOVED_PIPELINED, 150},
        {&intel_1m, &amd_1m_stream, UNMAPPED, OFP_MOVED_PIPELINED, 150},
        {&intel_64k, &amd_64k_asleep, UNMAPPED, OFP_MOVED_PIPELINED, 400},
    };

    (void)state;
    /* A trial that meets a message during which the process did not run has to be made again: four of five runs are in time. */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int in_time = 0;

        for (uint64_t seed = 1; seed <= 50; seed++) {
            struct run run = {.random = seed};

            move_messages(&run, cases[i].before, cases[i].ways, 1000);
            move_messages(&run, cases[i].after, cases[i].ways, cases[i].within);
            in_time += measure_share(&run, cases[i].after, cases[i].ways, cases[i].best, 200) > 0.9;
        }
        assert_true(in_time >= 40);
    }
}

/* Phases that change again and again cost little more than had each message taken its fastest way. */
static void changes_all_the_time(void **state)
{
    static const struct costs *const phases[] = {&amd_1m, &contended_1m, &intel_1m, &intel_1m_written};
    struct run run = {.random = 9};

    (void)state;
    for (uint32_t i = 0; i < 80; i++)
        move_messages(&run, phases[i % 4], UNMAPPED, 300);
    assert_true(run.spent < 1.3 * run.least);
}

static void nothing_is_tried_with_messages_that_are_alone(void **state)
{
    struct run run = {.random = 3};

    (void)state;
    for (int i = 0; i < 1000; i++)
        move_message(&run, &intel_1m, UNMAPPED, true);
    assert_int_equal(run.trials, 0);
    assert_int_equal(run.taken[OFP_MOVED_PIPELINED], 1000);
}

static void what_is_known_serves_messages_that_are_alone(void **state)
{
    struct run run = {.random = 4};
    uint64_t before;

    (void)state;
    move_messages(&run, &intel_1m, UNMAPPED, 200);
    before = run.taken[OFP_MOVED_ATTACHED];
    for (int i = 0; i < 100; i++)
        move_message(&run, &intel_1m, UNMAPPED, true);
    assert_int_equal(run.taken[OFP_MOVED_ATTACHED] - before, 100);
}

/* A sender that sleeps leaves attach; when it is awake again, both are there as before. */
static void a_way_that_is_not_offered(void **state)
{
    struct run run = {.random = 6};
    uint64_t before;

    (void)state;
    move_messages(&run, &amd_1m, UNMAPPED, 200);
    before = run.taken[OFP_MOVED_PIPELINED];
    move_messages(&run, &amd_1m, SHM_METHOD_BIT(OFP_MOVED_ATTACHED), 200);
    assert_int_equal(run.taken[OFP_MOVED_PIPELINED], before);
    assert_true(measure_share(&run, &amd_1m, UNMAPPED, OFP_MOVED_PIPELINED, 200) > 0.9);
}

/* Costs that no message has, as a clock that stands still or a process that was stopped for an hour would tell them. */
static void costs_out_of_range(void **state)
{
    static const uint64_t told[] = {0, 1, UINT64_C(3600000000000)};
    struct shm_choice choice = {0};
    bool trial;

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint32_t way = shm_choice_choose_method(&choice, &trials, ALL, false, &trial);

        shm_choice_store_cost(&choice, way, trial, i % 2 ? 1 : UINT64_C(1) << 40, told[i % 3]);
        assert_true(way < OFP_MOVED_WAYS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_way_is_taken),
        cmocka_unit_test(trials_lose_little),
        cmocka_unit_test(a_change_is_followed),
        cmocka_unit_test(changes_all_the_time),
        cmocka_unit_test(nothing_is_tried_with_messages_that_are_alone),
        cmocka_unit_test(what_is_known_serves_messages_that_are_alone),
        cmocka_unit_test(a_way_that_is_not_offered),
        cmocka_unit_test(costs_out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
