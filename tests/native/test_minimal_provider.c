/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider that the guide quotes, under the sanitizers: whole, announced, waiting for room, and never received. */
#include "core_fixture.h"

#include <stdio.h>

#define SMALL_CORE 4 /* announcements that it keeps */

static struct side side;

static int open_side(void **state)
{
    (void)state;
    setenv("OFIPY_ANNOUNCEMENTS", "4", 1);
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    unsetenv("OFIPY_ANNOUNCEMENTS");
    /* It is its own other side. */
    sides_meet(&side, &side);
    return 0;
}

static int close_side(void **state)
{
    (void)state;
    side_close(&side);
    return 0;
}

static void post(struct ofp_operation op) { assert_int_equal(ofp_post(side.endpoint, &op, 1), 1); }

static void expect(uint64_t context)
{
    struct ofp_completion row = next_completion(&side, NULL);

    assert_int_equal(row.error, 0);
    assert_int_equal(row.context, context);
}

static void test_short_and_long(void **state)
{
    static char out[1000], in[1000];
    static const size_t sizes[] = {0, 256, 257, sizeof(out)};

    (void)state;
    memset(out, 'x', sizeof(out));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(in, 0, sizeof(in));
        post(tagged(OFP_TRECV, side.peer, i, in, sizeof(in), 0));
        post(tagged(OFP_TSEND, side.peer, i, out, sizes[i], 0));
        expect(0);
        expect(0);
        assert_memory_equal(in, out, sizes[i]);
        assert_int_equal(sizes[i] < sizeof(in) ? in[sizes[i]] : 0, 0);
    }
}

static void test_announcements_wait_for_room(void **state)
{
    static char out[1000], in[1000];
    struct ofp_completion row;
    int rows = 0;

    (void)state;
    for (uint64_t i = 0; i < 3 * SMALL_CORE; i++) {
        out[0] = (char)i;
        post(tagged(OFP_TSEND, side.peer, i, out, sizeof(out), i));
    }
    for (uint64_t i = 0; i < 3 * SMALL_CORE; i++)
        post(tagged(OFP_TRECV, side.peer, i, in, sizeof(in), i));
    for (; rows < 6 * SMALL_CORE; rows++) {
        row = next_completion(&side, NULL);
        assert_int_equal(row.error, 0);
    }
}

static void test_what_nobody_receives_ends_with_the_endpoint(void **state)
{
    static char out[1000];

    (void)state;
    for (uint64_t i = 0; i < 2 * SMALL_CORE; i++)
        post(tagged(OFP_TSEND, side.peer, i, out, sizeof(out), i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_short_and_long, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_announcements_wait_for_room, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_what_nobody_receives_ends_with_the_endpoint, open_side, close_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
