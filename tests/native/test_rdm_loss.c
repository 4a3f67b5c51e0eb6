/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints do everything that endpoints do, and at one step of all that their channel is asked the line between
 * them is lost: at every step in turn, over every kind of channel. Each operation ends exactly once, well or not;
 * nothing is left over; and the next exchange goes well.
 */
#include "rdm_fixture.h"

#define LONG 150000 /* several gets, and many packets */
#define REGION_KEY 77
#define SENDS 6
#define FIRST_RECEIVE 100
#define FIRST_SEND 200
#define FIRST_REMOTE 300
#define LAST 400

static const uint64_t lengths[SENDS] = {8, 3000, LONG, 100, 5000, 0};
static const uint64_t levels[SENDS] = {0, 0, 0, OFP_DELIVERY_COMPLETE, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};

struct actor {
    struct side side;
    uint8_t *out, *in, *memory, *scratch;
    struct ofp_region_handle region;
    uint64_t word;                   /* that the other's device changes, where there are atomics of devices */
    struct ofp_region_handle device; /* its region; id 0: there are none */
    int ended[LAST];
    int errors;
};

static void actor_open(struct actor *actor, enum rdmfake_kind kind, uint64_t key)
{
    struct ofp_region_attr attr = {
        .length = LONG, .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE, .has_key = 1, .key = key};

    rdm_side_open(&actor->side, kind, 0);
    actor->out = malloc(LONG);
    actor->in = malloc(SENDS * LONG);
    actor->memory = malloc(LONG);
    actor->scratch = malloc(2 * LONG);
    memset(actor->out, 0x5a, LONG);
    memset(actor->memory, 0, LONG);
    memset(actor->scratch, 0, 2 * LONG);
    attr.base = actor->memory;
    assert_int_equal(ofp_region_register(actor->side.domain, &attr, &actor->region), 0);
    actor->device.id = 0;
    if (kind != RDMFAKE_GETS)
        return;
    attr = (struct ofp_region_attr){
        .base = &actor->word, .length = sizeof(actor->word), .access = OFP_ACCESS_DEVICE_ATOMIC};
    assert_int_equal(ofp_region_register(actor->side.domain, &attr, &actor->device), 0);
}

static void actor_close(struct actor *actor)
{
    rdm_check_idle(&actor->side);
    assert_int_equal(ofp_endpoint_close(actor->side.endpoint, 1000000000), 0);
    assert_int_equal(ofp_region_close(actor->side.domain, actor->region.id), 0);
    if (actor->device.id)
        assert_int_equal(ofp_region_close(actor->side.domain, actor->device.id), 0);
    assert_int_equal(ofp_av_close(actor->side.av), 0);
    assert_int_equal(ofp_cq_close(actor->side.cq), 0);
    assert_int_equal(ofp_domain_close(actor->side.domain), 0);
    free(actor->out);
    free(actor->in);
    free(actor->memory);
    free(actor->scratch);
}

static void post(struct actor *actor, struct ofp_operation op, uint64_t flags)
{
    op.flags = flags;
    assert_int_equal(ofp_post(actor->side.endpoint, &op, 1), 1);
}

static void post_remote(struct actor *actor, const struct actor *other, uint16_t code, void *local, uint64_t length,
                        uint64_t context)
{
    struct ofp_operation op = tagged(code, actor->side.peer, 0, local, length, context);

    op.remote_key = other->region.key;
    op.remote_offset = other->region.remote_base;
    if (ofp_operation_is(code, OFP_ATOMIC_KIND)) {
        op.atomic_op = OFP_ATOMIC_SUM;
        op.datatype = OFP_UINT64;
        op.result_offset = (uint64_t)(uintptr_t)(actor->scratch + LONG);
    }
    post(actor, op, 0);
}

static void change_word(struct actor *actor, const struct actor *other, uint64_t context)
{
    struct ofp_operation op = tagged(OFP_FETCH_ATOMIC, actor->side.peer, 0, actor->out, sizeof(other->word), context);

    op.remote_key = other->device.key;
    op.remote_offset = other->device.remote_base;
    op.atomic_op = OFP_ATOMIC_SUM;
    op.datatype = OFP_UINT64;
    op.result_offset = (uint64_t)(uintptr_t)(actor->scratch + LONG);
    post(actor, op, OFP_DEVICE_ATOMIC);
}

static void begin(struct actor *actor, const struct actor *other)
{
    memset(actor->ended, 0, sizeof(actor->ended));
    actor->errors = 0;
    /* The first half of the messages is expected. */
    for (uint64_t i = 0; i < SENDS; i++) {
        if (i % 2)
            post(actor, tagged(OFP_TRECV, actor->side.peer, i, actor->in + i * LONG, LONG, FIRST_RECEIVE + i), 0);
    }
    for (uint64_t i = 0; i < SENDS; i++)
        post(actor, tagged(OFP_TSEND, actor->side.peer, i, actor->out, lengths[i], FIRST_SEND + i), levels[i]);
    post_remote(actor, other, OFP_WRITE, actor->out, LONG, FIRST_REMOTE);
    post_remote(actor, other, OFP_READ, actor->scratch, LONG, FIRST_REMOTE + 1);
    post_remote(actor, other, OFP_FETCH_ATOMIC, actor->out, 16, FIRST_REMOTE + 2);
    post_remote(actor, other, OFP_WRITE, actor->out, 16, FIRST_REMOTE + 3);
    if (actor->device.id)
        change_word(actor, other, FIRST_REMOTE + 4);
}

static void post_rest(struct actor *actor)
{
    for (uint64_t i = 0; i < SENDS; i += 2)
        post(actor, tagged(OFP_TRECV, actor->side.peer, i, actor->in + i * LONG, LONG, FIRST_RECEIVE + i), 0);
}

static void read_queue(struct actor *actor)
{
    struct ofp_completion row;

    while (ofp_cq_read(actor->side.cq, &row, 1) == 1) {
        if (row.flags & (OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_REMOTE_WRITE))
            continue;
        assert_true(row.context < LAST);
        actor->ended[row.context]++;
        actor->errors += row.error != 0;
    }
}

/* Receives wait on when the line is lost and not the process: they are taken back. */
static void take_back(struct actor *actor)
{
    for (uint64_t i = 0; i < SENDS; i++)
        if (!actor->ended[FIRST_RECEIVE + i])
            assert_int_equal(ofp_cancel(actor->side.endpoint, FIRST_RECEIVE + i), 0);
    read_queue(actor);
}

static void check_ends(const struct actor *actor)
{
    for (uint64_t i = 0; i < SENDS; i++) {
        assert_int_equal(actor->ended[FIRST_RECEIVE + i], 1);
        assert_int_equal(actor->ended[FIRST_SEND + i], 1);
    }
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(actor->ended[FIRST_REMOTE + i], 1);
    assert_int_equal(actor->ended[FIRST_REMOTE + 4], actor->device.id != 0);
}

static void exchange(struct actor *a, struct actor *b)
{
    begin(a, b);
    begin(b, a);
    rdm_settle(&a->side, &b->side);
    read_queue(a);
    read_queue(b);
    post_rest(a);
    post_rest(b);
    rdm_settle(&a->side, &b->side);
    read_queue(a);
    read_queue(b);
}

/*
 * What was lost may have crossed a line that was asked for anew; whatever was sent then and not received is received.
 */
static void drop_leftovers(struct actor *a, struct actor *b)
{
    struct actor *both[] = {a, b};

    for (int who = 0; who < 2; who++) {
        struct actor *actor = both[who];
        struct ofp_endpoint_statistics statistics;

        for (;;) {
            assert_int_equal(ofp_endpoint_statistics(actor->side.endpoint, &statistics), 0);
            if (!statistics.unexpected_messages && !statistics.announced_messages)
                break;
            struct ofp_operation any = tagged(OFP_TRECV, OFP_PEER_ANY, 0, actor->in, LONG, 0);

            any.ignore = UINT64_MAX;
            post(actor, any, 0);
            rdm_settle(&a->side, &b->side);
            read_queue(actor);
        }
    }
}

/* Whether there was such a step. */
static bool lose_at(enum rdmfake_kind kind, uint64_t step)
{
    struct actor a = {0}, b = {0};
    bool lost;

    actor_open(&a, kind, REGION_KEY);
    actor_open(&b, kind, REGION_KEY + 1);
    sides_meet(&a.side, &b.side);
    rdmfake_lose_at(step);
    exchange(&a, &b);
    lost = rdmfake_steps() >= step;
    rdmfake_lose_at(0);
    if (lost) {
        take_back(&a);
        take_back(&b);
        rdm_settle(&a.side, &b.side);
        read_queue(&a);
        read_queue(&b);
    }
    check_ends(&a);
    check_ends(&b);
    drop_leftovers(&a, &b);
    exchange(&a, &b);
    check_ends(&a);
    check_ends(&b);
    assert_int_equal(a.errors + b.errors, 0);
    assert_memory_equal(a.in + 2 * LONG, b.out, LONG);
    forget_warnings();
    actor_close(&a);
    actor_close(&b);
    return lost;
}

static void lose_at_every_step(enum rdmfake_kind kind)
{
    uint64_t step = 1;

    /* The first hundred each, then some: a payload in packets is hundreds of steps alike. */
    while (lose_at(kind, step))
        step += step < 100 ? 1 : 7;
    assert_true(step > 40);
}

static void test_packets(void **state)
{
    (void)state;
    lose_at_every_step(RDMFAKE_PACKETS);
}

static void test_puts(void **state)
{
    (void)state;
    lose_at_every_step(RDMFAKE_PUTS);
}

static void test_gets(void **state)
{
    (void)state;
    lose_at_every_step(RDMFAKE_GETS);
}

/* Small packets, and windows that hardly grow: everything waits for credits. */
static int few(void **state)
{
    (void)state;
    setenv("OFIPY_RDMFAKE_PACKET_SIZE", "1500", 1);
    setenv("OFIPY_RDMFAKE_RECEIVE_SIZE", "12", 1);
    return 0;
}

static int enough(void **state)
{
    (void)state;
    unsetenv("OFIPY_RDMFAKE_PACKET_SIZE");
    unsetenv("OFIPY_RDMFAKE_RECEIVE_SIZE");
    return 0;
}

#define FEW(test) {#test " with few credits", test, few, enough, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_puts),
        cmocka_unit_test(test_gets),
        FEW(test_packets),
        FEW(test_puts),
        FEW(test_gets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
