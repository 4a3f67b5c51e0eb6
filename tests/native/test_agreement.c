/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All members of a group play the agreement against each other, over a network that delivers the messages of a pair in
 * order, and all others in any order. Members die at every step, or the network is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agreement/agreement.h"

enum { SIZE_MAX_TESTED = 7, QUEUE = 512, AGREEMENTS = 3 };

struct message {
    struct ofpi_agreement_message head;
    uint32_t values[SIZE_MAX_TESTED];
};

struct channel {
    struct message messages[QUEUE];
    uint32_t first, count;
};

struct model {
    uint32_t size;
    uint64_t seed, steps;
    bool is_dead[SIZE_MAX_TESTED], is_cut;
    uint32_t part[SIZE_MAX_TESTED]; /* of the cut network */
    uint32_t wanted;                /* agreements that each member makes */
    uint32_t started[SIZE_MAX_TESTED], ended[SIZE_MAX_TESTED];
    bool has_failed[SIZE_MAX_TESTED];
    uint64_t flags[AGREEMENTS][SIZE_MAX_TESTED];
    /* Each member has returned this. */
    struct {
        uint64_t flags;
        uint32_t values[SIZE_MAX_TESTED];
    } results[AGREEMENTS][SIZE_MAX_TESTED];
    struct ofpi_agreement members[SIZE_MAX_TESTED];
    char memory[SIZE_MAX_TESTED][SIZE_MAX_TESTED * 18 + 2] __attribute__((aligned(8)));
    struct channel channels[SIZE_MAX_TESTED][SIZE_MAX_TESTED];
};

static struct model model;

static uint32_t draw_number(uint32_t limit)
{
    model.seed = model.seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((model.seed >> 33) % limit);
}

static bool is_reachable(uint32_t from, uint32_t to)
{
    return !model.is_dead[to] && (!model.is_cut || model.part[from] == model.part[to]);
}

static void enqueue_message(struct ofpi_agreement *agreement, uint32_t rank,
                            const struct ofpi_agreement_message *message, const uint32_t *values)
{
    struct channel *channel = &model.channels[agreement->rank][rank];
    struct message *entry = &channel->messages[(channel->first + channel->count) % QUEUE];

    assert_true(rank < model.size && rank != agreement->rank);
    assert_true(channel->count < QUEUE);
    entry->head = *message;
    assert_int_equal(message->has_values, values != NULL);
    if (values)
        memcpy(entry->values, values, model.size * sizeof(*values));
    channel->count++;
}

static void open_model(uint32_t size, uint64_t seed, uint32_t wanted, bool needs_majority)
{
    memset(&model, 0, sizeof(model));
    model.size = size;
    model.seed = seed;
    model.wanted = wanted;
    for (uint32_t rank = 0; rank < size; rank++) {
        assert_true(ofpi_agreement_compute_size(size) <= sizeof(model.memory[rank]));
        ofpi_agreement_init(&model.members[rank], size, rank, needs_majority, model.memory[rank]);
        model.members[rank].send = enqueue_message;
    }
}

/* A member has returned from an agreement, perhaps. */
static void note_outcome(uint32_t rank)
{
    const struct ofpi_agreement *member = &model.members[rank];
    uint32_t number = model.ended[rank];

    if (member->outcome > OFPI_AGREEMENT_DECIDED)
        model.has_failed[rank] = true;
    if (model.started[rank] == number || model.has_failed[rank] || member->is_open)
        return;
    model.results[number][rank].flags = member->decision.flags;
    memcpy(model.results[number][rank].values, member->decision.values, model.size * sizeof(uint32_t));
    model.ended[rank]++;
}

static bool can_start(uint32_t rank)
{
    return !model.is_dead[rank] && !model.has_failed[rank] && model.started[rank] == model.ended[rank] &&
           model.started[rank] < model.wanted;
}

static void start_member(uint32_t rank)
{
    uint32_t number = model.started[rank]++;

    model.flags[number][rank] = draw_number(2) ? 3 : 1 + draw_number(3);
    ofpi_agreement_start(&model.members[rank], model.flags[number][rank], 100 * number + rank);
    note_outcome(rank);
}

/* The oldest message of a pair arrives, or its receiver is not there, and the sender learns it. */
static void deliver_message(uint32_t from, uint32_t to)
{
    struct channel *channel = &model.channels[from][to];
    struct message *message = &channel->messages[channel->first];

    channel->first = (channel->first + 1) % QUEUE;
    channel->count--;
    if (is_reachable(from, to)) {
        ofpi_agreement_receive(&model.members[to], &message->head, message->head.has_values ? message->values : NULL);
        note_outcome(to);
    } else if (!model.is_dead[from]) {
        ofpi_agreement_mark_suspected(&model.members[from], to);
        note_outcome(from);
    }
}

/* A member that dies loses some of what it sent last. */
static void kill_member(uint32_t rank)
{
    model.is_dead[rank] = true;
    for (uint32_t to = 0; to < model.size; to++) {
        struct channel *channel = &model.channels[rank][to];

        channel->count = draw_number(channel->count + 1);
    }
}

/* Start a member, or deliver a message; false: there is nothing to do. */
static bool run_step(void)
{
    uint32_t choices = 0, chosen;

    for (uint32_t from = 0; from < model.size; from++) {
        choices += can_start(from);
        for (uint32_t to = 0; to < model.size; to++)
            choices += model.channels[from][to].count != 0;
    }
    if (!choices)
        return false;
    chosen = draw_number(choices);
    for (uint32_t from = 0; from < model.size; from++) {
        if (can_start(from) && !chosen--) {
            start_member(from);
            return true;
        }
        for (uint32_t to = 0; to < model.size; to++)
            if (model.channels[from][to].count && !chosen--) {
                deliver_message(from, to);
                return true;
            }
    }
    return false;
}

static bool is_over(void)
{
    for (uint32_t rank = 0; rank < model.size; rank++)
        if (!model.is_dead[rank] && !model.has_failed[rank] &&
            (model.ended[rank] < model.wanted || ofpi_agreement_is_pending(&model.members[rank])))
            return false;
    return true;
}

struct death {
    uint64_t step;
    uint32_t rank;
};

/* Run to the end; `death` may be NULL. Members try again only when nothing else happens. */
static void run_model(const struct death *deaths, uint32_t count)
{
    uint32_t retries = 0;

    for (uint32_t dead = 0; !is_over(); model.steps++) {
        for (; dead < count && deaths[dead].step == model.steps; dead++)
            kill_member(deaths[dead].rank);
        if (run_step())
            continue;
        assert_true(retries++ < 50);
        for (uint32_t rank = 0; rank < model.size; rank++)
            if (!model.is_dead[rank] && model.started[rank])
                ofpi_agreement_retry(&model.members[rank]);
    }
}

/* Members that returned have the same, and it is right. `dead_may_differ`: those that died after they had returned. */
static void check_results(bool dead_may_differ)
{
    for (uint32_t number = 0; number < model.wanted; number++) {
        const uint32_t *values = NULL;
        uint64_t flags = 0, expected = UINT64_MAX;

        for (uint32_t rank = 0; rank < model.size; rank++) {
            if (model.ended[rank] <= number || (dead_may_differ && model.is_dead[rank]))
                continue;
            if (!values) {
                values = model.results[number][rank].values;
                flags = model.results[number][rank].flags;
            }
            assert_memory_equal(values, model.results[number][rank].values, model.size * sizeof(*values));
            assert_int_equal(flags, model.results[number][rank].flags);
            assert_int_equal(values[rank], 100 * number + rank);
        }
        for (uint32_t rank = 0; values && rank < model.size; rank++) {
            if (values[rank] == OFPI_AGREEMENT_DEAD) {
                assert_true(model.is_dead[rank] || model.has_failed[rank]);
                continue;
            }
            assert_int_equal(values[rank], 100 * number + rank);
            expected &= model.flags[number][rank];
        }
        assert_true(!values || flags == expected);
    }
}

static void test_without_deaths(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= SIZE_MAX_TESTED; size++)
        for (uint64_t seed = 0; seed < 200; seed++) {
            open_model(size, seed, AGREEMENTS, seed % 2);
            run_model(NULL, 0);
            check_results(false);
            for (uint32_t rank = 0; rank < size; rank++)
                assert_int_equal(model.ended[rank], AGREEMENTS);
        }
}

/* One member dies before each step of a run, then two do. */
static void test_a_death_at_every_step(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= 5; size++)
        for (uint64_t seed = 0; seed < 12; seed++)
            for (uint32_t rank = 0; rank < size; rank++) {
                struct death death = {0, rank};

                do {
                    open_model(size, seed, 2, false);
                    run_model(&death, 1);
                    check_results(true);
                    for (uint32_t other = 0; other < size; other++)
                        assert_true(model.is_dead[other] || model.ended[other] == 2);
                } while (death.step++ < model.steps);
            }
}

static void test_many_deaths(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct death deaths[SIZE_MAX_TESTED];
        uint32_t count;

        open_model(3 + (uint32_t)(seed % 5), seed, AGREEMENTS, false);
        count = 1 + draw_number(model.size - 1);
        for (uint32_t i = 0; i < count; i++)
            deaths[i] = (struct death){(i ? deaths[i - 1].step : 0) + draw_number(20), draw_number(model.size)};
        run_model(deaths, count);
        check_results(true);
        for (uint32_t rank = 0; rank < model.size; rank++)
            assert_true(model.is_dead[rank] || model.ended[rank] == AGREEMENTS);
    }
}

/* Where a majority is needed, even those that died had returned the same, and a cut leaves one part at most. */
static void test_a_cut_network(void **state)
{
    uint32_t decided = 0, failed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint32_t cut = draw_number(30), larger = 0;

        open_model(3 + (uint32_t)(seed % 5), seed, 2, true);
        for (uint32_t rank = 0; rank < model.size; rank++) {
            model.part[rank] = draw_number(2);
            larger += model.part[rank];
        }
        for (uint32_t i = 0; i < cut; i++, model.steps++)
            run_step();
        model.is_cut = true;
        run_model(NULL, 0);
        check_results(false);
        for (uint32_t rank = 0; rank < model.size; rank++) {
            uint32_t mine = model.part[rank] ? larger : model.size - larger;

            decided += model.ended[rank] == 2;
            failed += model.has_failed[rank];
            if (2 * mine > model.size)
                assert_int_equal(model.ended[rank], 2);
        }
    }
    assert_true(decided && failed);
}

/* Members suspect others that live. Without a cut, nobody who returns differs where a majority is needed. */
static void test_wrong_suspicions(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        open_model(3 + (uint32_t)(seed % 5), seed, 2, true);
        for (uint32_t i = 0; i < 60; i++, model.steps++) {
            uint32_t rank = draw_number(model.size), other = draw_number(model.size);

            run_step();
            if (draw_number(4) || !model.started[rank] || model.has_failed[rank])
                continue;
            ofpi_agreement_mark_suspected(&model.members[rank], other);
            note_outcome(rank);
        }
        for (uint32_t i = 0; i < 20; i++) {
            while (run_step())
                ;
            for (uint32_t rank = 0; rank < model.size; rank++)
                if (model.started[rank]) {
                    ofpi_agreement_retry(&model.members[rank]);
                    note_outcome(rank);
                }
        }
        check_results(false);
    }
}

/* A member that takes part no more is dead for the others; it answers with what it has decided. */
static void test_a_member_that_leaves(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint32_t gone, steps = draw_number(30);

        open_model(2 + (uint32_t)(seed % 5), seed, 2, false);
        gone = draw_number(model.size);
        for (uint32_t i = 0; i < steps; i++, model.steps++)
            run_step();
        if (!model.members[gone].is_open)
            continue;
        ofpi_agreement_abandon(&model.members[gone]);
        note_outcome(gone);
        run_model(NULL, 0);
        check_results(true);
        for (uint32_t rank = 0; rank < model.size; rank++)
            assert_true(rank == gone || model.ended[rank] == 2);
    }
}

/* Low ones mostly, and ones that no member reaches by counting. */
static uint64_t draw_ballot(void) { return draw_number(8) ? draw_number(12) : UINT64_MAX - draw_number(12); }

/* Arbitrary messages of a member leave the others within their memory. */
static void test_any_message_is_safe(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        open_model(3, seed, 2, seed % 2);
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t rank = draw_number(3);
            struct ofpi_agreement_message message = {.kind = 14 + draw_number(14),
                                                     .rank = (rank + 1 + draw_number(2)) % 3,
                                                     .value = draw_number(3) ? draw_number(9) : OFPI_AGREEMENT_DEAD,
                                                     .number = draw_number(4),
                                                     .ballot = draw_ballot(),
                                                     .accepted = draw_ballot(),
                                                     .flags = draw_number(4)};
            uint32_t values[3] = {draw_number(3), draw_number(2) ? 1 : OFPI_AGREEMENT_DEAD, 2};

            ofpi_agreement_receive(&model.members[rank], &message, draw_number(2) ? values : NULL);
            note_outcome(rank);
            if (can_start(rank) && draw_number(2))
                start_member(rank);
            while (i % 8 == 0 && run_step())
                ;
        }
    }
}

/* A member that lies rejects a ballot by the highest number: the coordinator's next ballot still lies above its last one. */
static void test_a_ballot_that_cannot_be(void **state)
{
    struct ofpi_agreement *member = &model.members[0];
    struct ofpi_agreement_message message = {
        .kind = OFPI_AGREEMENT_REJECT, .rank = 1, .number = 1, .ballot = UINT64_MAX};
    uint64_t ballot;

    (void)state;
    open_model(3, 0, 1, false);
    ofpi_agreement_start(member, 0, 7);
    ballot = message.accepted = member->ballot;
    ofpi_agreement_receive(member, &message, NULL);
    ofpi_agreement_retry(member);
    assert_true(member->ballot >= ballot);
    assert_int_equal(member->phase, OFPI_PHASE_PREPARING);
    message.ballot = ballot + 1;
    ofpi_agreement_receive(member, &message, NULL);
    ofpi_agreement_retry(member);
    assert_true(member->ballot > ballot + 1);
}

/*
 * A coordinator must propose a value that a member has accepted before, even if it names the coordinator dead. It is
 * expelled then, and goes on telling the others. Afterwards they are lost as well, so nobody is left but itself.
 */
static void test_a_coordinator_that_decides_its_own_end(void **state)
{
    uint32_t values[2] = {OFPI_AGREEMENT_DEAD, 1};
    struct ofpi_agreement_message message = {.kind = OFPI_AGREEMENT_PROMISE, .rank = 1, .number = 1, .accepted = 1};
    struct ofpi_agreement *member = &model.members[0];

    (void)state;
    open_model(2, 0, 1, false);
    /* Bytes behind the member's memory that would be taken for suspicions. */
    memset(model.memory[0] + ofpi_agreement_compute_size(2), 1,
           sizeof(model.memory[0]) - ofpi_agreement_compute_size(2));
    ofpi_agreement_start(member, 0, 7);
    message.ballot = member->ballot;
    ofpi_agreement_receive(member, &message, values);
    message.kind = OFPI_AGREEMENT_ACCEPT;
    ofpi_agreement_receive(member, &message, NULL);
    assert_int_equal(member->outcome, OFPI_AGREEMENT_EXPELLED);
    ofpi_agreement_mark_suspected(member, 1);
    assert_false(member->is_suspected[0]);
    assert_false(ofpi_agreement_is_pending(member));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_deaths),
        cmocka_unit_test(test_a_death_at_every_step),
        cmocka_unit_test(test_many_deaths),
        cmocka_unit_test(test_a_cut_network),
        cmocka_unit_test(test_wrong_suspicions),
        cmocka_unit_test(test_a_member_that_leaves),
        cmocka_unit_test(test_any_message_is_safe),
        cmocka_unit_test(test_a_ballot_that_cannot_be),
        cmocka_unit_test(test_a_coordinator_that_decides_its_own_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
