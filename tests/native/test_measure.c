/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops over the public calls: what they move, what they leave behind, and that a failed operation ends them. */
#include "core_fixture.h"
#include "ofipy/measure.h"

#define COUNT 150 /* more than one post takes */
#define WINDOWS 3

typedef int64_t loop_fn(const struct ofp_measure_attr *attr);

struct player {
    struct side side;
    loop_fn *loop;
    struct ofp_measure_attr attr;
    int64_t result;
};

static void players_open(struct player *players, char (*out)[8], char (*in)[8])
{
    for (int i = 0; i < 2; i++)
        side_open(&players[i].side, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&players[0].side, &players[1].side);
    for (int i = 0; i < 2; i++) {
        struct side *side = &players[i].side;

        memset(out[i], 0, sizeof(out[i]));
        memset(in[i], 0, sizeof(in[i]));
        out[i][0] = 'a';
        players[i].attr = (struct ofp_measure_attr){.endpoint = side->endpoint,
                                                    .cq = side->cq,
                                                    .peer = side->peer,
                                                    .first = i == 0,
                                                    .tag = 5,
                                                    .send_buffer = out[i],
                                                    .receive_buffer = in[i],
                                                    .length = sizeof(out[i]),
                                                    .iterations = COUNT};
    }
}

static void players_close(struct player *players)
{
    for (int i = 0; i < 2; i++)
        side_close(&players[i].side);
}

static void *run(void *argument)
{
    struct player *player = argument;

    player->result = player->loop(&player->attr);
    return NULL;
}

static void run_both(struct player *players, loop_fn *loop)
{
    struct ofp_completion row;
    pthread_t second;

    players[0].loop = players[1].loop = loop;
    assert_int_equal(pthread_create(&second, NULL, run, &players[1]), 0);
    run(&players[0]);
    pthread_join(second, NULL);
    for (int i = 0; i < 2; i++) {
        assert_true(players[i].result > 0);
        assert_int_equal(ofp_cq_read(players[i].side.cq, &row, 1), 0);
    }
}

static void test_pingpong(void **state)
{
    static uint64_t nanoseconds[COUNT];
    static char out[2][8], in[2][8];
    struct player players[2];

    (void)state;
    players_open(players, out, in);
    players[0].attr.nanoseconds = nanoseconds;
    run_both(players, ofp_measure_pingpong);
    assert_int_equal(in[0][0], 'a');
    assert_int_equal(in[1][0], 'a');
    for (int i = 0; i < COUNT; i++)
        assert_true(nanoseconds[i] > 0);
    players_close(players);
}

static void test_stream(void **state)
{
    static uint64_t nanoseconds[WINDOWS];
    static char out[2][8], in[2][8];
    struct player players[2];

    (void)state;
    players_open(players, out, in);
    for (int i = 0; i < 2; i++) {
        players[i].attr.iterations = WINDOWS;
        players[i].attr.depth = COUNT;
    }
    players[0].attr.nanoseconds = nanoseconds;
    run_both(players, ofp_measure_stream);
    for (int i = 0; i < WINDOWS; i++)
        assert_true(nanoseconds[i] > 0);
    players[0].attr.depth = 0;
    assert_int_equal(ofp_measure_stream(&players[0].attr), -EINVAL);
    assert_int_equal(in[0][0], 0);
    assert_int_equal(in[1][0], 'a');
    players_close(players);
}

static struct ofp_region_handle lend(struct side *side, void *memory)
{
    struct ofp_region_attr attr = {.base = memory, .length = 8, .access = OFP_ACCESS_REMOTE_WRITE};
    struct ofp_region_handle handle;

    assert_int_equal(ofp_region_register(side->domain, &attr, &handle), 0);
    return handle;
}

static void test_write(void **state)
{
    static _Alignas(8) char out[2][8], in[2][8];
    struct ofp_region_handle lent[2];
    struct player players[2];
    uint64_t begun, ended;

    (void)state;
    players_open(players, out, in);
    memcpy(&begun, out[0], sizeof(begun));
    for (int i = 0; i < 2; i++) {
        lent[i] = lend(&players[i].side, in[i]);
        players[!i].attr.remote_key = lent[i].key;
        players[!i].attr.remote_offset = lent[i].remote_base;
    }
    run_both(players, ofp_measure_write);
    for (int i = 0; i < 2; i++) {
        memcpy(&ended, in[i], sizeof(ended));
        assert_int_equal(ended, begun + COUNT);
        assert_int_equal(ofp_region_close(players[i].side.domain, lent[i].id), 0);
    }
    players[0].attr.length = 0;
    assert_int_equal(ofp_measure_write(&players[0].attr), -EINVAL);
    players_close(players);
}

/* What the players' attributes say of one lane. */
static int64_t pipeline_loop(const struct ofp_measure_attr *attr)
{
    struct ofp_operation op = {.op = attr->first ? OFP_SEND : OFP_RECV,
                               .peer = attr->peer,
                               .offset = (uint64_t)(uintptr_t)(attr->first ? attr->send_buffer : attr->receive_buffer),
                               .length = attr->length};
    struct ofp_measure_pipeline_attr pipeline = {.endpoints = &attr->endpoint,
                                                 .cq = attr->cq,
                                                 .count = 1,
                                                 .operations = attr->first ? &op : NULL,
                                                 .receives = attr->first ? NULL : &op,
                                                 .iterations = attr->iterations,
                                                 .depth = attr->depth,
                                                 .receive_depth = 1,
                                                 .list = 3,
                                                 .moderation = 1,
                                                 .completed = attr->nanoseconds};

    struct ofp_measure_pipeline *running;
    int64_t result = ofp_measure_pipeline_open(&pipeline, &running);

    if (result)
        return result;
    if (!attr->first && ofp_post(attr->endpoint, &op, 1) != 1)
        result = -EAGAIN;
    while (!result || result == -EINTR)
        result = ofp_measure_pipeline_run(running);
    ofp_measure_pipeline_close(running);
    return result;
}

static void test_pipeline(void **state)
{
    static uint64_t nanoseconds[COUNT];
    static char out[2][8], in[2][8];
    struct player players[2];

    (void)state;
    players_open(players, out, in);
    players[0].attr.depth = players[1].attr.depth = 5;
    players[0].attr.nanoseconds = nanoseconds;
    run_both(players, pipeline_loop);
    assert_int_equal(in[1][0], 'a');
    assert_true(nanoseconds[COUNT - 1] >= nanoseconds[0] && nanoseconds[0] > 0);
    players[0].attr.peer = 77; /* nobody */
    assert_true(pipeline_loop(&players[0].attr) < 0);
    players[0].attr.depth = 0;
    assert_int_equal(pipeline_loop(&players[0].attr), -EINVAL);
    players_close(players);
}

static void test_failures(void **state)
{
    static _Alignas(8) char out[2][8], in[2][8];
    struct player players[2];

    (void)state;
    players_open(players, out, in);
    players[0].attr.peer = 77; /* nobody */
    assert_true(ofp_measure_pingpong(&players[0].attr) < 0);
    players[0].attr.depth = 1;
    assert_true(ofp_measure_stream(&players[0].attr) < 0);
    assert_true(ofp_measure_write(&players[0].attr) < 0);
    assert_true(ofp_measure_fetch_add(&players[0].attr) < 0);
    players_close(players);
}

int main(void)
{
    const struct ofp_measure_calls calls = {ofp_post,  ofp_cq_read,     ofp_cq_wait, ofp_domain_progress,
                                            ofp_start, ofp_request_take};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pingpong), cmocka_unit_test(test_stream),
                                       cmocka_unit_test(test_write), cmocka_unit_test(test_pipeline),
                                       cmocka_unit_test(test_failures)};

    ofp_measure_bind(&calls);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
