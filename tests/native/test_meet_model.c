/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manager of native/meet, twice, over connections that are fake: all interleavings of requests, answers, timers and ends of
 * connections, with everything that may go wrong a few times. Either both sides end with the same one connection, or both with
 * none; nobody waits for ever; never are two connections used; each end of each connection is closed exactly once.
 *
 * A connection carries packets in order, both ways; its end is one of them, unless it is broken, which drops the rest. A packet
 * for an end that is closed is lost. A process that starts anew closes all that it had, and knows nothing.
 */
#include "meet_model.h"

#include <errno.h>

/* --------------------------------------------------------------------------------------------------------- connections */

static void send_packet(int from, uint8_t which, enum packet packet)
{
    struct connection *connection = &now.connection[which];
    uint8_t *queue = connection->queue[!from];
    int last = 0;

    if (!connection->open[!from])
        return;
    while (last < QUEUE && queue[last])
        last++;
    assert_true(last < QUEUE);
    queue[last] = (uint8_t)packet;
}

static void close_end(int who, uint8_t which)
{
    struct connection *connection = &now.connection[which];

    if (!connection->open[who])
        violated("an end is closed twice");
    send_packet(who, which, END);
    connection->open[who] = false;
    memset(connection->queue[who], 0, QUEUE);
}

static uint8_t open_connection(int who)
{
    for (uint8_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &now.connection[i];

        if (connection->opener != NONE)
            continue;
        *connection =
            (struct connection){.opener = (uint8_t)who, .open = {1, 1}, .incarnation = now.side[who].incarnation};
        return i;
    }
    fail_msg("more connections at once than the model has");
    return NONE;
}

static void drop(int who, uint8_t *which)
{
    if (*which != NONE)
        close_end(who, *which);
    *which = NONE;
}

static void drop_both(int who)
{
    drop(who, &now.side[who].request);
    drop(who, &now.side[who].used);
}

/* ------------------------------------------------------------------------------------------------- what a side supplies */

static bool row_used[256];

struct ofpi_meet_decision __real_ofpi_meet_decision_find(enum ofpi_meet_state state, enum ofpi_meet_event event,
                                                         unsigned facts);
struct ofpi_meet_decision __wrap_ofpi_meet_decision_find(enum ofpi_meet_state state, enum ofpi_meet_event event,
                                                         unsigned facts);

struct ofpi_meet_decision __wrap_ofpi_meet_decision_find(enum ofpi_meet_state state, enum ofpi_meet_event event,
                                                         unsigned facts)
{
    struct ofpi_meet_decision decision = __real_ofpi_meet_decision_find(state, event, facts);

    row_used[decision.row] = true;
    return decision;
}

static int who_of(const struct ofp_peer *peer) { return (int)(peer - peers); }

static struct ofpi_meeting *find_meeting_of_peer(const struct ofp_peer *peer)
{
    struct side *side = &now.side[who_of(peer)];

    return transport->transient && side->request == NONE && side->used == NONE ? NULL : &side->meeting;
}

static int dial(struct ofp_peer *peer, char *text, size_t text_size)
{
    int who = who_of(peer);

    (void)text, (void)text_size;
    if (goes_wrong(&now.left.shortages))
        return -EMFILE;
    if (goes_wrong(&now.left.rejections))
        return -ECONNREFUSED;
    now.side[who].request = open_connection(who);
    send_packet(who, now.side[who].request, REQUEST);
    return 0;
}

static int accept_request(struct ofp_peer *peer, void *request)
{
    uint8_t which = *(const uint8_t *)request;
    int who = who_of(peer);

    if (goes_wrong(&now.left.shortages)) {
        close_end(who, which);
        return -EMFILE;
    }
    /* The core clears what the transport has of a peer that it had lost. */
    if (!now.side[who].wanted)
        now.side[who].meeting.state = OFPI_MEET_IDLE;
    now.side[who].pausing = false;
    now.side[who].used = which;
    now.side[who].theirs = now.connection[which].incarnation;
    set_wanted(who, true);
    send_packet(who, which, ACCEPTANCE);
    return transport->confirms ? 0 : OFPI_MEETING_CONFIRMED;
}

static void put_off(struct ofp_peer *peer, void *request)
{
    send_packet(who_of(peer), *(const uint8_t *)request, LATER);
    close_end(who_of(peer), *(const uint8_t *)request);
}

static void close_unused(struct ofp_peer *peer)
{
    drop_both(who_of(peer));
    if (transport->transient)
        now.side[who_of(peer)].meeting.state = OFPI_MEET_IDLE;
}

/* The core drops a peer that it loses, or that it tries again later. */
static void lose(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    bool again = end->deferred;

    if (ofpi_meet_is_shortage(end->error) && !again)
        violated("a shortage ends the attempts");
    drop_both(who_of(peer));
    now.side[who_of(peer)].probing = false;
    now.side[who_of(peer)].meeting.state = OFPI_MEET_IDLE;
    now.side[who_of(peer)].pausing = again;
    set_wanted(who_of(peer), again);
}

static void drain(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    (void)end;
    set_wanted(who_of(peer), false);
}

/* A peer that does not listen cannot be asked. */
static bool probe(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    (void)end;
    now.side[who_of(peer)].probing = choose(2);
    return now.side[who_of(peer)].probing;
}

static void use(struct ofp_peer *peer)
{
    struct side *side = &now.side[who_of(peer)];

    if (side->request != NONE) {
        side->used = side->request;
        side->request = NONE;
        if (transport->confirms)
            send_packet(who_of(peer), side->used, CONFIRMATION);
    }
    set_wanted(who_of(peer), false);
}

static const struct ofpi_meeting_ops ops = {
    .find = find_meeting_of_peer,
    .dial = dial,
    .accept = accept_request,
    .refuse = put_off,
    .close = close_unused,
    .lose = lose,
    .drain = drain,
    .probe = probe,
    .use = use,
};

/* --------------------------------------------------------------------------------------------------- what can happen */

static const struct ofpi_meeting_end end_known = {.error = ECONNRESET},
                                     end_unsure = {.error = ECONNRESET, .unsure = true},
                                     end_deferred = {.error = ECONNREFUSED, .deferred = true};

static void requested(int who, uint8_t which)
{
    const struct side *side = &now.side[who];
    unsigned facts = ofpi_meet_winner_compute(transport->winner[who], who ? -1 : 1);

    if (transport->withdraws && has_end(&now.connection[which], who)) {
        close_end(who, which);
        return;
    }
    if (goes_wrong(&now.left.rejections)) {
        send_packet(who, which, REJECTION);
        close_end(who, which);
        return;
    }
    if (side->used != NONE) {
        facts |= now.connection[which].incarnation != side->theirs ? OFPI_MEET_RENEWED : 0;
        facts |= !transport->drains && now.connection[side->used].opener == who ? OFPI_MEET_OPENED : 0;
    }
    /* Once doubted, it is read sooner or later. Where connections are probed, an accepted one may have carried nothing. */
    if (transport->drains && transport->probes && side->meeting.state == OFPI_MEET_ACCEPTED && choose(2))
        facts |= OFPI_MEET_GIVEN_UP;
    else if (transport->drains && (side->meeting.state != OFPI_MEET_DOUBTED || choose(2)))
        facts |= OFPI_MEET_UNREAD;
    ofpi_meeting_requested(&ops, &peers[who], &which, facts);
}

static void ended(int who, uint8_t which)
{
    const struct side *side = &now.side[who];
    bool can_break = side->meeting.state == OFPI_MEET_ACCEPTED || transport->probes;

    if (which == side->request && transport->persists)
        ofpi_meeting_answered(&ops, &peers[who], &end_deferred);
    else if (which == side->request)
        ofpi_meeting_ended(&ops, &peers[who], false, &end_known);
    else if (which == side->used)
        /* Who it was may be known otherwise than by the connection. */
        ofpi_meeting_ended(&ops, &peers[who], transport->drains, can_break && choose(2) ? &end_unsure : &end_known);
    else
        /* A request that was not looked at. */
        close_end(who, which);
}

static bool arrive(int who, uint8_t which)
{
    struct connection *connection = &now.connection[which];
    uint8_t *queue = connection->queue[who], packet = queue[0];

    if (connection->opener == NONE || !connection->open[who] || !packet)
        return false;
    memmove(queue, queue + 1, QUEUE - 1);
    queue[QUEUE - 1] = NO_PACKET;
    switch ((enum packet)packet) {
    case REQUEST:
        requested(who, which);
        break;
    case ACCEPTANCE:
        now.side[who].theirs = now.side[!who].incarnation;
        ofpi_meeting_answered(&ops, &peers[who], NULL);
        break;
    case LATER:
        ofpi_meeting_answered(&ops, &peers[who], &end_deferred);
        break;
    case REJECTION:
        ofpi_meeting_answered(&ops, &peers[who], &end_known);
        break;
    case CONFIRMATION:
        if (now.side[who].meeting.state == OFPI_MEET_ACCEPTED)
            ofpi_meeting_confirmed(&ops, &peers[who]);
        break;
    case NO_PACKET:
    case END:
        ended(who, which);
        break;
    }
    return true;
}

/* The core begins an attempt. */
static void start(int who)
{
    char text[OFP_TEXT_MAX] = "";

    now.side[who].pausing = false;
    set_wanted(who, true);
    if (ofpi_meeting_start(&ops, &peers[who], text, sizeof(text)) != 0)
        set_wanted(who, false);
}

static bool pause_ends(int who, uint8_t which)
{
    (void)which;
    if (!now.side[who].pausing)
        return false;
    if (goes_wrong(&now.left.deadlines)) {
        now.side[who].pausing = false;
        set_wanted(who, false);
    } else {
        start(who);
    }
    return true;
}

static bool probe_ends(int who, uint8_t which)
{
    (void)which;
    if (!now.side[who].probing)
        return false;
    ofpi_meeting_ended(&ops, &peers[who], false, &end_known);
    return true;
}

static bool reading_ends(int who, uint8_t which)
{
    (void)which;
    if (now.side[who].meeting.state != OFPI_MEET_DRAINING)
        return false;
    ofpi_meeting_drained(&ops, &peers[who], &end_known);
    return true;
}

static bool deadline_passes(int who, uint8_t which)
{
    uint8_t state = now.side[who].meeting.state;

    (void)which;
    if (!now.left.deadlines || (state != OFPI_MEET_CONNECTING && state != OFPI_MEET_ACCEPTED))
        return false;
    now.left.deadlines--;
    faulted = true;
    if (state == OFPI_MEET_CONNECTING)
        ofpi_meeting_answered(&ops, &peers[who], &end_known);
    else
        ofpi_meeting_ended(&ops, &peers[who], false, &end_unsure);
    return true;
}

static bool restart(int who, uint8_t which)
{
    (void)which;
    if (!now.left.restarts)
        return false;
    now.left.restarts--;
    for (uint8_t i = 0; i < CONNECTIONS; i++)
        if (now.connection[i].opener != NONE && now.connection[i].open[who])
            close_end(who, i);
    now.side[who] =
        (struct side){.request = NONE, .used = NONE, .incarnation = (uint8_t)(now.side[who].incarnation + 1)};
    faulted = true;
    return true;
}

static bool breaks(int who, uint8_t which)
{
    struct connection *connection = &now.connection[which];

    if (who || !now.left.breaks || connection->opener == NONE)
        return false;
    now.left.breaks--;
    for (int side = 0; side < 2; side++) {
        memset(connection->queue[side], 0, QUEUE);
        connection->queue[side][0] = connection->open[side] ? END : NO_PACKET;
    }
    faulted = true;
    return true;
}

static bool connect_wanted(int who, uint8_t which)
{
    (void)which;
    if (now.side[who].meeting.state != OFPI_MEET_IDLE || now.side[who].pausing || !now.left.wants[who])
        return false;
    now.left.wants[who]--;
    start(who);
    return true;
}

static bool drop_peer(int who, uint8_t which)
{
    (void)which;
    if (!now.left.disconnects || now.side[who].meeting.state == OFPI_MEET_IDLE)
        return false;
    now.left.disconnects--;
    drop_both(who);
    now.side[who] = (struct side){.request = NONE, .used = NONE, .incarnation = now.side[who].incarnation};
    faulted = true;
    return true;
}

static void explore(void)
{
    static bool (*const steps_of_side[])(int who, uint8_t which) = {
        pause_ends, probe_ends, reading_ends, deadline_passes, connect_wanted, drop_peer, restart,
    };

    for (int who = 0; who < 2; who++) {
        for (uint8_t i = 0; i < CONNECTIONS; i++) {
            take_step(arrive, who, i);
            take_step(breaks, who, i);
        }
        for (size_t i = 0; i < sizeof(steps_of_side) / sizeof(steps_of_side[0]); i++)
            take_step(steps_of_side[i], who, NONE);
    }
}

static const struct transport tcp = {.winner = {OFPI_MEET_LARGER_WINS, OFPI_MEET_LARGER_WINS}, .probes = true};
static const struct transport shm = {.winner = {OFPI_MEET_SMALLER_WINS, OFPI_MEET_SMALLER_WINS},
                                     .confirms = true,
                                     .drains = true,
                                     .withdraws = true,
                                     .persists = true,
                                     .transient = true};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_want_and_nothing_goes_wrong),
        cmocka_unit_test(test_one_mishap_after_the_other),
        cmocka_unit_test(test_all_mishaps_together),
        cmocka_unit_test(test_every_row_is_used),
        cmocka_unit_test(test_both_sides_must_know_one_winner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
