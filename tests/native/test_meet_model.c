/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of native/meet, as two sides that follow it: all interleavings of their requests, answers, timers and ends of
 * connections, with everything that may go wrong a few times. Either both end with the same one connection, or both with none;
 * nobody waits for ever; never are two connections used; each end of each connection is closed exactly once.
 *
 * A connection carries packets in order, both ways; its end is one of them, unless it is broken, which drops the rest. A packet
 * for an end that is closed is lost. A process that starts anew closes all that it had, and knows nothing.
 */
#include "meet_model.h"

/* ------------------------------------------------------------------------------------------------- what a side does */

static void send_packet(struct world *world, int from, uint8_t which, enum packet packet)
{
    struct connection *connection = &world->connection[which];
    uint8_t *queue = connection->queue[!from];
    int last = 0;

    if (!connection->open[!from])
        return;
    while (last < QUEUE && queue[last])
        last++;
    assert_true(last < QUEUE);
    queue[last] = (uint8_t)packet;
}

static void close_end(struct world *world, int who, uint8_t which)
{
    struct connection *connection = &world->connection[which];

    if (!connection->open[who])
        violated("an end is closed twice");
    send_packet(world, who, which, END);
    connection->open[who] = false;
    memset(connection->queue[who], 0, QUEUE);
}

static uint8_t open_connection(struct world *world, int who)
{
    for (uint8_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &world->connection[i];

        if (connection->opener != NONE)
            continue;
        *connection =
            (struct connection){.opener = (uint8_t)who, .open = {1, 1}, .incarnation = world->side[who].incarnation};
        return i;
    }
    fail_msg("more connections at once than the model has");
    return NONE;
}

static void drop(struct world *world, int who, uint8_t *which)
{
    if (*which != NONE)
        close_end(world, who, *which);
    *which = NONE;
}

static void happen(struct world world, int who, enum ofpi_meet_event event, unsigned facts, uint8_t request,
                   bool fault);

/* What may lack something goes on in two ways. */
static void try_to_connect(struct world world, int who, bool fault)
{
    struct side *side = &world.side[who];

    if (world.left.shortages) {
        struct world lacking = world;

        lacking.left.shortages--;
        happen(lacking, who, OFPI_MEET_SHORTAGE, 0, NONE, true);
        if (lacking.left.deadlines) {
            lacking.left.deadlines--;
            happen(lacking, who, OFPI_MEET_SHORTAGE, OFPI_MEET_LATE, NONE, true);
        }
    }
    side->request = open_connection(&world, who);
    send_packet(&world, who, side->request, REQUEST);
    go(world, fault);
}

static void try_to_accept(struct world world, int who, uint8_t request, bool fault)
{
    struct side *side = &world.side[who];
    uint8_t theirs = world.connection[request].incarnation;
    unsigned wanted = side->wanted ? OFPI_MEET_WANTED : 0;

    side->used = request;
    if (world.left.shortages) {
        struct world lacking = world;

        lacking.left.shortages--;
        happen(lacking, who, OFPI_MEET_SHORTAGE, wanted, NONE, true);
    }
    side->theirs = theirs;
    side->wanted = true;
    send_packet(&world, who, request, ACCEPTANCE);
    if (transport->confirms)
        go(world, fault);
    else
        happen(world, who, OFPI_MEET_CONFIRM, 0, NONE, fault);
}

static void happen(struct world world, int who, enum ofpi_meet_event event, unsigned facts, uint8_t request, bool fault)
{
    struct side *side = &world.side[who];
    struct ofpi_meet_decision decision = ofpi_meet_decision_find((enum ofpi_meet_state)side->state, event, facts);
    unsigned acts = decision.acts;

    assert_true(decision.row < ofpi_meet_rows);
    row_used[decision.row] = true;
    side->state = decision.next;
    if (acts & OFPI_MEET_DO_CLOSE) {
        drop(&world, who, &side->request);
        drop(&world, who, &side->used);
    }
    if (acts & OFPI_MEET_DO_LOSE) {
        drop(&world, who, &side->used);
        side->wanted = side->probing = false;
    }
    if (acts & OFPI_MEET_DO_PROBE)
        side->probing = true;
    if (acts & OFPI_MEET_DO_DRAIN)
        side->wanted = false;
    if (acts & OFPI_MEET_DO_PUT_OFF) {
        send_packet(&world, who, request, LATER);
        close_end(&world, who, request);
    }
    if (acts & OFPI_MEET_DO_USE) {
        if (side->request != NONE) {
            side->used = side->request;
            side->request = NONE;
            if (transport->confirms)
                send_packet(&world, who, side->used, CONFIRMATION);
        }
        side->wanted = false;
    }
    if (acts & OFPI_MEET_DO_ACCEPT)
        try_to_accept(world, who, request, fault);
    else if (acts & OFPI_MEET_DO_CONNECT)
        try_to_connect(world, who, fault);
    else
        go(world, fault);
}

/* --------------------------------------------------------------------------------------------------- what can happen */

static void requested(struct world world, int who, uint8_t which)
{
    const struct side *side = &world.side[who];
    unsigned facts = ofpi_meet_winner_compute(transport->winner[who], who ? -1 : 1);

    if (transport->withdraws && has_end(&world.connection[which], who)) {
        close_end(&world, who, which);
        go(world, false);
        return;
    }
    if (world.left.rejections) {
        struct world rejecting = world;

        rejecting.left.rejections--;
        send_packet(&rejecting, who, which, REJECTION);
        close_end(&rejecting, who, which);
        go(rejecting, true);
    }
    if (side->used != NONE) {
        facts |= world.connection[which].incarnation != side->theirs ? OFPI_MEET_RENEWED : 0;
        facts |= !transport->drains && world.connection[side->used].opener == who ? OFPI_MEET_OPENED : 0;
    }
    /* Once doubted, it is read sooner or later. */
    if (transport->drains && side->state == OFPI_MEET_DOUBTED)
        happen(world, who, OFPI_MEET_REQUEST, facts, which, false);
    happen(world, who, OFPI_MEET_REQUEST, facts | (transport->drains ? OFPI_MEET_UNREAD : 0), which, false);
}

static void ended(struct world world, int who, uint8_t which)
{
    const struct side *side = &world.side[who];
    unsigned unread = transport->drains ? OFPI_MEET_UNREAD : 0;

    if (which == side->request) {
        happen(world, who, transport->persists ? OFPI_MEET_LATER : OFPI_MEET_REJECT, 0, NONE, false);
    } else if (which == side->used) {
        /* Who it was may be known otherwise than by the connection. */
        if (side->state == OFPI_MEET_ACCEPTED || transport->probes)
            happen(world, who, OFPI_MEET_BROKEN, 0, NONE, false);
        happen(world, who, OFPI_MEET_CLOSED, unread, NONE, false);
    } else {
        /* A request that was not looked at. */
        close_end(&world, who, which);
        go(world, false);
    }
}

static void put_off(struct world world, int who)
{
    happen(world, who, OFPI_MEET_LATER, 0, NONE, false);
    if (!world.left.deadlines)
        return;
    world.left.deadlines--;
    happen(world, who, OFPI_MEET_LATER, OFPI_MEET_LATE, NONE, true);
}

static void arrive(struct world world, int who, uint8_t which)
{
    struct connection *connection = &world.connection[which];
    uint8_t *queue = connection->queue[who], packet = queue[0];

    if (connection->opener == NONE || !connection->open[who] || !packet)
        return;
    memmove(queue, queue + 1, QUEUE - 1);
    queue[QUEUE - 1] = NO_PACKET;
    switch ((enum packet)packet) {
    case REQUEST:
        requested(world, who, which);
        break;
    case ACCEPTANCE:
        world.side[who].theirs = world.side[!who].incarnation;
        happen(world, who, OFPI_MEET_ACCEPT, 0, NONE, false);
        break;
    case LATER:
        put_off(world, who);
        break;
    case REJECTION:
        happen(world, who, OFPI_MEET_REJECT, 0, NONE, false);
        break;
    case CONFIRMATION:
        if (world.side[who].state == OFPI_MEET_ACCEPTED)
            happen(world, who, OFPI_MEET_CONFIRM, 0, NONE, false);
        else
            go(world, false);
        break;
    case NO_PACKET:
    case END:
        ended(world, who, which);
        break;
    }
}

static void timers(const struct world *world, int who)
{
    const struct side *side = &world->side[who];
    struct world late = *world;

    if (side->state == OFPI_MEET_BACKOFF)
        happen(*world, who, OFPI_MEET_TIMER, 0, NONE, false);
    if (side->probing)
        happen(*world, who, OFPI_MEET_CLOSED, 0, NONE, false);
    if (side->state == OFPI_MEET_DRAINING)
        happen(*world, who, OFPI_MEET_DRAINED, 0, NONE, false);
    if (!late.left.deadlines)
        return;
    late.left.deadlines--;
    if (side->state == OFPI_MEET_BACKOFF || side->state == OFPI_MEET_CONNECTING)
        happen(late, who, OFPI_MEET_TIMER, OFPI_MEET_LATE, NONE, true);
    if (side->state == OFPI_MEET_ACCEPTED)
        happen(late, who, OFPI_MEET_BROKEN, 0, NONE, true);
}

static void restart(struct world world, int who)
{
    if (!world.left.restarts)
        return;
    world.left.restarts--;
    for (uint8_t i = 0; i < CONNECTIONS; i++)
        if (world.connection[i].opener != NONE && world.connection[i].open[who])
            close_end(&world, who, i);
    world.side[who] =
        (struct side){.request = NONE, .used = NONE, .incarnation = (uint8_t)(world.side[who].incarnation + 1)};
    go(world, true);
}

static void breaks(struct world world, uint8_t which)
{
    struct connection *connection = &world.connection[which];

    if (!world.left.breaks || connection->opener == NONE)
        return;
    world.left.breaks--;
    for (int who = 0; who < 2; who++) {
        memset(connection->queue[who], 0, QUEUE);
        connection->queue[who][0] = connection->open[who] ? END : NO_PACKET;
    }
    go(world, true);
}

static void wishes(struct world world, int who)
{
    struct side *side = &world.side[who];
    struct world leaving = world;

    if (side->state == OFPI_MEET_IDLE && world.left.wants[who]) {
        world.left.wants[who]--;
        side->wanted = true;
        happen(world, who, OFPI_MEET_CONNECT, 0, NONE, false);
    }
    if (leaving.left.disconnects && side->state != OFPI_MEET_IDLE) {
        leaving.left.disconnects--;
        side = &leaving.side[who];
        drop(&leaving, who, &side->request);
        drop(&leaving, who, &side->used);
        *side = (struct side){.request = NONE, .used = NONE, .incarnation = side->incarnation};
        go(leaving, true);
    }
}

static void explore(const struct world *world)
{
    for (int who = 0; who < 2; who++) {
        for (uint8_t i = 0; i < CONNECTIONS; i++)
            arrive(*world, who, i);
        timers(world, who);
        wishes(*world, who);
        restart(*world, who);
    }
    for (uint8_t i = 0; i < CONNECTIONS; i++)
        breaks(*world, i);
}

static const struct transport tcp = {.winner = {OFPI_MEET_LARGER_WINS, OFPI_MEET_LARGER_WINS}, .probes = true};
static const struct transport shm = {.winner = {OFPI_MEET_SMALLER_WINS, OFPI_MEET_SMALLER_WINS},
                                     .confirms = true,
                                     .drains = true,
                                     .withdraws = true,
                                     .persists = true};

/* native/rdm: what came by a connection that broke without a word is read as well, and one may break while it is read. */
static const struct transport rdm = {
    .winner = {OFPI_MEET_LARGER_WINS, OFPI_MEET_LARGER_WINS}, .confirms = true, .drains = true, .probes = true};

static void expect_good(struct faults faults)
{
    const char *wrong = outcome(&tcp, &faults);

    if (wrong)
        fail_msg("as tcp: %s", wrong);
    wrong = outcome(&shm, &faults);
    if (wrong)
        fail_msg("as shm: %s", wrong);
    wrong = outcome(&rdm, &faults);
    if (wrong)
        fail_msg("as rdm: %s", wrong);
}

static void test_both_want_and_nothing_goes_wrong(void **state)
{
    (void)state;
    expect_good((struct faults){.wants = {1, 1}});
    expect_good((struct faults){.wants = {1, 0}});
}

static void test_one_mishap_after_the_other(void **state)
{
    static const struct faults mishaps[] = {
        {.restarts = 3}, {.breaks = 3}, {.shortages = 4}, {.rejections = 3}, {.deadlines = 3}, {.disconnects = 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(mishaps) / sizeof(mishaps[0]); i++) {
        struct faults faults = mishaps[i];

        faults.wants[0] = faults.wants[1] = 2;
        expect_good(faults);
    }
}

static void test_all_mishaps_together(void **state)
{
    (void)state;
    expect_good((struct faults){.wants = {2, 1},
                                .restarts = 1,
                                .breaks = 1,
                                .shortages = 1,
                                .rejections = 1,
                                .deadlines = 1,
                                .disconnects = 1});
}

/* A row that no interleaving uses says nothing. Behind the tests above. */
static void test_every_row_is_used(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ofpi_meet_rows; i++)
        if (!row_used[i])
            fail_msg("row %u: state %u, event %u", i, ofpi_meet_table[i].state, ofpi_meet_table[i].event);
}

/* Which also says that the model notices what is wrong. */
static void test_both_sides_must_know_one_winner(void **state)
{
    const struct transport yields = {.winner = {OFPI_MEET_LARGER_WINS, OFPI_MEET_SMALLER_WINS}};

    (void)state;
    assert_non_null(outcome(&yields, &(struct faults){.wants = {1, 1}}));
}

static void test_back_off(void **state)
{
    struct ofpi_backoff backoff = ofpi_backoff_start(1000, 10, 50);
    uint64_t now = 0;

    (void)state;
    for (const uint64_t *pause = (const uint64_t[]){10, 20, 40, 50, 50, 0}; *pause; pause++) {
        assert_int_equal(ofpi_backoff_advance(&backoff, now), now + *pause);
        now += *pause;
    }
    assert_int_equal(ofpi_backoff_check_deadline(&backoff, now), 0);
    assert_int_equal(ofpi_backoff_advance(&backoff, 980), 1000);
    assert_int_equal(ofpi_backoff_check_deadline(&backoff, 1000), OFPI_MEET_LATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_want_and_nothing_goes_wrong),
        cmocka_unit_test(test_one_mishap_after_the_other),
        cmocka_unit_test(test_all_mishaps_together),
        cmocka_unit_test(test_every_row_is_used),
        cmocka_unit_test(test_both_sides_must_know_one_winner),
        cmocka_unit_test(test_back_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
