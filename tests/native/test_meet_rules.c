/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every decision of native/meet (states x events x facts) against rules from docs/explanation/meet.md. Then each row of
 * the table is altered in each plausible way: a rule must break, or all decisions must be the same as before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "meet/meet.h"

#define STATES (OFPI_MEET_DRAINING + 1)
#define EVENTS (OFPI_MEET_DRAINED + 1)
#define FACTS 64u
#define ROWS_MAX 64
#define NO_STATE STATES /* no row: it cannot happen */

struct table {
    struct ofpi_meet_row rows[ROWS_MAX];
    uint32_t count;
};

struct decision {
    unsigned state, event, facts, acts, next;
};

static struct decision decide(const struct table *table, unsigned state, unsigned event, unsigned facts)
{
    struct decision decision = {state, event, facts, 0, NO_STATE};

    for (uint32_t i = 0; i < table->count && decision.next == NO_STATE; i++) {
        const struct ofpi_meet_row *row = &table->rows[i];

        if (row->state == state && row->event == event && !(row->facts & ~facts)) {
            decision.acts = row->acts;
            decision.next = row->next;
        }
    }
    return decision;
}

/* ----------------------------------------------------------------------------------------------------------- the rules */

static bool does(const struct decision *of, unsigned act) { return (of->acts & act) != 0; }
static bool is(const struct decision *of, unsigned fact) { return (of->facts & fact) != 0; }

/* The core was told that the peer is up, and not yet that it is lost. */
static bool is_up(unsigned state) { return state == OFPI_MEET_UP || state == OFPI_MEET_DOUBTED; }
static bool has_connection(unsigned state) { return state >= OFPI_MEET_ACCEPTED; }
static bool is_entered(const struct decision *of, unsigned state) { return of->next == state && of->state != state; }

static bool can_happen(const struct decision *of)
{
    switch ((enum ofpi_meet_event)of->event) {
    case OFPI_MEET_CONNECT:
        return of->state == OFPI_MEET_IDLE;
    case OFPI_MEET_REQUEST:
        return true;
    case OFPI_MEET_ACCEPT:
    case OFPI_MEET_FAIL:
        return of->state == OFPI_MEET_CONNECTING;
    case OFPI_MEET_CONFIRM:
    case OFPI_MEET_SHORTAGE:
        return of->state == OFPI_MEET_ACCEPTED;
    case OFPI_MEET_BROKEN:
    case OFPI_MEET_CLOSED:
        return has_connection(of->state);
    case OFPI_MEET_DRAINED:
        return of->state == OFPI_MEET_DRAINING;
    }
    return false;
}

/* Acts: each exactly where its object begins, ends or is asked about. */

static bool rule_request_gets_one_answer(const struct decision *of)
{
    int answers = does(of, OFPI_MEET_DO_ACCEPT) + does(of, OFPI_MEET_DO_PUT_OFF);

    return answers == (of->event == OFPI_MEET_REQUEST);
}

static bool rule_accepted_request_is_the_connection(const struct decision *of)
{
    bool begins = of->event == OFPI_MEET_REQUEST && does(of, OFPI_MEET_DO_ACCEPT);

    return begins ? of->next == OFPI_MEET_ACCEPTED : !is_entered(of, OFPI_MEET_ACCEPTED);
}

static bool rule_connecting_begins_with_a_request(const struct decision *of)
{
    return does(of, OFPI_MEET_DO_CONNECT) == is_entered(of, OFPI_MEET_CONNECTING);
}

static bool rule_core_hears_of_up_once(const struct decision *of)
{
    return does(of, OFPI_MEET_DO_USE) == (is_up(of->next) && !is_up(of->state));
}

static bool rule_draining_begins_with_reading(const struct decision *of)
{
    return does(of, OFPI_MEET_DO_DRAIN) == is_entered(of, OFPI_MEET_DRAINING);
}

static bool rule_doubtful_end_is_probed(const struct decision *of)
{
    return does(of, OFPI_MEET_DO_PROBE) == (of->event == OFPI_MEET_BROKEN && is_up(of->state));
}

/*
 * Ours, or accepted and not used: closed exactly when it becomes neither the connection nor its remains, or another
 * takes its place.
 */
static bool rule_unused_connection_is_closed(const struct decision *of)
{
    bool had = of->state == OFPI_MEET_CONNECTING || of->state == OFPI_MEET_ACCEPTED;
    bool replaced = does(of, OFPI_MEET_DO_ACCEPT);
    bool stays = (of->next == of->state && !replaced) || of->next == OFPI_MEET_UP ||
                 (of->state == OFPI_MEET_ACCEPTED && of->next == OFPI_MEET_DRAINING);

    return does(of, OFPI_MEET_DO_CLOSE) == (had && !stays);
}

/* A connection that was up ends only so, and so do operations that waited for one, when this side gives up. */
static bool rule_core_hears_of_each_loss(const struct decision *of)
{
    bool was_up = is_up(of->state) || of->state == OFPI_MEET_DRAINING;
    bool ends = was_up && !is_up(of->next) && of->next != OFPI_MEET_DRAINING;
    bool waited = of->state == OFPI_MEET_CONNECTING;

    return does(of, OFPI_MEET_DO_LOSE) == (ends || (waited && of->next == OFPI_MEET_IDLE));
}

static bool rule_no_other_act(const struct decision *of)
{
    return !(of->acts &
             ~(unsigned)(OFPI_MEET_DO_CLOSE | OFPI_MEET_DO_LOSE | OFPI_MEET_DO_DRAIN | OFPI_MEET_DO_PROBE |
                         OFPI_MEET_DO_PUT_OFF | OFPI_MEET_DO_ACCEPT | OFPI_MEET_DO_CONNECT | OFPI_MEET_DO_USE));
}

/* States: what each event leads to. */

static bool rule_operations_make_a_request(const struct decision *of)
{
    return of->event != OFPI_MEET_CONNECT || of->next == OFPI_MEET_CONNECTING;
}

static bool rule_answer_or_confirmation_makes_it_up(const struct decision *of)
{
    bool agreed = of->event == OFPI_MEET_ACCEPT || of->event == OFPI_MEET_CONFIRM;

    return agreed == is_entered(of, OFPI_MEET_UP);
}

/* Whether to try again is the core's decision. */
static bool rule_failure_is_the_end(const struct decision *of)
{
    return of->event != OFPI_MEET_FAIL || of->next == OFPI_MEET_IDLE;
}

/* Our own request gave way to the accepted one, so its operations need another if that fails. */
static bool rule_lost_crossing_is_made_good(const struct decision *of)
{
    if (of->state != OFPI_MEET_ACCEPTED)
        return true;
    if (of->event == OFPI_MEET_BROKEN)
        return of->next == OFPI_MEET_CONNECTING;
    return of->event != OFPI_MEET_SHORTAGE ||
           of->next == (is(of, OFPI_MEET_WANTED) ? OFPI_MEET_CONNECTING : OFPI_MEET_IDLE);
}

static bool rule_broken_connection_is_doubted(const struct decision *of)
{
    return of->event != OFPI_MEET_BROKEN || !is_up(of->state) || of->next == OFPI_MEET_DOUBTED;
}

/* What arrived is read first. An accepted connection may have data that nobody has looked at. */
static bool rule_closed_connection_ends_after_its_data(const struct decision *of)
{
    bool unread = is(of, OFPI_MEET_UNREAD) || !is_up(of->state);

    return of->event != OFPI_MEET_CLOSED || of->next == (unread ? OFPI_MEET_DRAINING : OFPI_MEET_IDLE);
}

static bool rule_draining_ends_when_all_is_read(const struct decision *of)
{
    return of->state != OFPI_MEET_DRAINING ||
           of->next == (of->event == OFPI_MEET_DRAINED ? OFPI_MEET_IDLE : OFPI_MEET_DRAINING);
}

static bool rule_request_that_loses_a_crossing_is_put_off(const struct decision *of)
{
    if (of->event != OFPI_MEET_REQUEST || has_connection(of->state))
        return true;
    /* Only a request in flight can cross. */
    if (of->state == OFPI_MEET_CONNECTING && is(of, OFPI_MEET_OURS_WINS))
        return does(of, OFPI_MEET_DO_PUT_OFF) && of->next == OFPI_MEET_CONNECTING;
    return does(of, OFPI_MEET_DO_ACCEPT);
}

/* Another incarnation: the old connection is over. Its data is read first; an accepted one's always. */
static bool rule_successor_ends_the_connection(const struct decision *of)
{
    if (of->event != OFPI_MEET_REQUEST || !is(of, OFPI_MEET_RENEWED) || !has_connection(of->state))
        return true;
    if (is_up(of->state) && !is(of, OFPI_MEET_UNREAD))
        return does(of, OFPI_MEET_DO_ACCEPT);
    return does(of, OFPI_MEET_DO_PUT_OFF) && of->next == OFPI_MEET_DRAINING;
}

/*
 * The same incarnation: put off while it may have crossed ours, or data is unread; else the peer lost the connection, or
 * gave up the one that was accepted.
 */
static bool rule_request_on_top_of_a_connection(const struct decision *of)
{
    bool crossing = of->state == OFPI_MEET_UP && is(of, OFPI_MEET_OPENED);

    if (of->event != OFPI_MEET_REQUEST || is(of, OFPI_MEET_RENEWED))
        return true;
    if (of->state == OFPI_MEET_ACCEPTED)
        return does(of, is(of, OFPI_MEET_GIVEN_UP) ? OFPI_MEET_DO_ACCEPT : OFPI_MEET_DO_PUT_OFF) &&
               of->next == OFPI_MEET_ACCEPTED;
    if (!is_up(of->state))
        return true;
    if (crossing || is(of, OFPI_MEET_UNREAD))
        return does(of, OFPI_MEET_DO_PUT_OFF) && of->next == OFPI_MEET_DOUBTED;
    return does(of, OFPI_MEET_DO_ACCEPT);
}

#define RULE(name) {rule_##name, #name}
static const struct {
    bool (*holds)(const struct decision *of);
    const char *name;
} rules[] = {
    RULE(request_gets_one_answer),
    RULE(accepted_request_is_the_connection),
    RULE(connecting_begins_with_a_request),
    RULE(core_hears_of_up_once),
    RULE(draining_begins_with_reading),
    RULE(doubtful_end_is_probed),
    RULE(unused_connection_is_closed),
    RULE(core_hears_of_each_loss),
    RULE(no_other_act),
    RULE(operations_make_a_request),
    RULE(answer_or_confirmation_makes_it_up),
    RULE(failure_is_the_end),
    RULE(lost_crossing_is_made_good),
    RULE(broken_connection_is_doubted),
    RULE(closed_connection_ends_after_its_data),
    RULE(draining_ends_when_all_is_read),
    RULE(request_that_loses_a_crossing_is_put_off),
    RULE(successor_ends_the_connection),
    RULE(request_on_top_of_a_connection),
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

/* --------------------------------------------------------------------------------------------------------- the decisions */

static const char *find_broken_rule(const struct decision *of)
{
    if (can_happen(of) != (of->next != NO_STATE))
        return "an event has a row exactly if it can happen";
    for (size_t i = 0; i < RULES && of->next != NO_STATE; i++)
        if (!rules[i].holds(of))
            return rules[i].name;
    return NULL;
}

#define FOR_EACH_DECISION(table, decision)                                                                             \
    for (unsigned at = 0; at < STATES * EVENTS * FACTS; at++)                                                          \
        for (struct decision decision = decide(table, at / FACTS / EVENTS, at / FACTS % EVENTS, at % FACTS),           \
                             *once = &decision;                                                                        \
             once; once = NULL)

static struct table read_table(void)
{
    struct table table = {.count = ofpi_meet_rows};

    assert_true(ofpi_meet_rows < ROWS_MAX);
    memcpy(table.rows, ofpi_meet_table, ofpi_meet_rows * sizeof(table.rows[0]));
    return table;
}

static void test_every_decision_obeys_the_rules(void **state)
{
    struct table table = read_table();
    unsigned checked = 0;

    (void)state;
    FOR_EACH_DECISION(&table, decision)
    {
        const char *rule = find_broken_rule(&decision);

        if (rule)
            fail_msg("state %u, event %u, facts %u: %s", decision.state, decision.event, decision.facts, rule);
        checked++;
        if (decision.next == NO_STATE)
            continue;
        /* The library decides as this program reads the table. */
        assert_int_equal(ofpi_meet_decision_find(decision.state, decision.event, decision.facts).next, decision.next);
        assert_int_equal(ofpi_meet_decision_find(decision.state, decision.event, decision.facts).acts, decision.acts);
    }
    printf("%u decisions, %zu rules\n", checked, RULES);
}

/* Of two requests that cross, exactly one is accepted, whichever address wins. */
static void test_crossing_is_decided_alike(void **state)
{
    struct table table = read_table();

    (void)state;
    for (int winner = OFPI_MEET_LARGER_WINS; winner <= OFPI_MEET_SMALLER_WINS; winner++)
        for (unsigned others = 0; others < FACTS; others += 2) {
            unsigned ours = ofpi_meet_winner_compute((enum ofpi_meet_winner)winner, 1);
            unsigned theirs = ofpi_meet_winner_compute((enum ofpi_meet_winner)winner, -1);
            struct decision a = decide(&table, OFPI_MEET_CONNECTING, OFPI_MEET_REQUEST, others | ours);
            struct decision b = decide(&table, OFPI_MEET_CONNECTING, OFPI_MEET_REQUEST, others | theirs);

            assert_int_equal(does(&a, OFPI_MEET_DO_ACCEPT) + does(&b, OFPI_MEET_DO_ACCEPT), 1);
            assert_int_equal(does(&a, OFPI_MEET_DO_PUT_OFF) + does(&b, OFPI_MEET_DO_PUT_OFF), 1);
        }
}

/* ------------------------------------------------------------------------------------------------------- altered tables */

static unsigned killed, equivalent, survived;

static void judge(const struct table *altered, uint32_t row, const char *how, unsigned which)
{
    struct table table = read_table();
    bool same = true;

    FOR_EACH_DECISION(altered, decision)
    {
        struct decision original = decide(&table, decision.state, decision.event, decision.facts);

        if (find_broken_rule(&decision)) {
            killed++;
            return;
        }
        same = same && original.acts == decision.acts && original.next == decision.next;
    }
    if (same) {
        equivalent++;
        return;
    }
    survived++;
    printf("survived: row %u, %s %u\n", row, how, which);
}

static void alter_row(uint32_t i)
{
    struct table table = read_table(), altered = table;
    struct ofpi_meet_row *row = &altered.rows[i];

#define ALTER(change, how, which)                                                                                      \
    do {                                                                                                               \
        altered = table;                                                                                               \
        change;                                                                                                        \
        judge(&altered, i, how, which);                                                                                \
    } while (0)
    for (unsigned next = 0; next < STATES; next++)
        if (next != table.rows[i].next)
            ALTER(row->next = (uint8_t)next, "next state", next);
    for (unsigned bit = 0; bit < 9; bit++)
        ALTER(row->acts ^= (uint16_t)(1u << bit), "act", bit);
    for (unsigned bit = 0; bit < 6; bit++)
        ALTER(row->facts ^= (uint8_t)(1u << bit), "fact", bit);
    for (unsigned state = 0; state < STATES; state++)
        if (state != table.rows[i].state)
            ALTER(row->state = (uint8_t)state, "state", state);
    for (unsigned event = 0; event < EVENTS; event++)
        if (event != table.rows[i].event)
            ALTER(row->event = (uint8_t)event, "event", event);
    ALTER(memmove(row, row + 1, (table.count - i - 1) * sizeof(*row)); altered.count--, "deleted", 0);
    if (i + 1 < table.count)
        ALTER(row[0] = table.rows[i + 1]; row[1] = table.rows[i], "swapped with the next", 0);
#undef ALTER
}

static void test_every_altered_row_breaks_a_rule(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ofpi_meet_rows; i++)
        alter_row(i);
    printf("%u altered tables: %u break a rule, %u decide as before, %u survive\n", killed + equivalent + survived,
           killed, equivalent, survived);
    assert_int_equal(survived, 0);
    assert_true(killed > 20 * ofpi_meet_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_decision_obeys_the_rules),
        cmocka_unit_test(test_crossing_is_decided_alike),
        cmocka_unit_test(test_every_altered_row_breaks_a_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
