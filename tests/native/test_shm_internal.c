/* SPDX-License-Identifier: BSD-3-Clause */
/* The internal channel over shared memory, and towards an owner of an older ofipy, which does not know it. */
#include "internal_channel.h"
#include "object/peer.h"
#include "shm.h"

static void test_an_owner_that_does_not_know_it(void **state)
{
    struct internal_end sent = {0};
    struct side from, to;
    struct ofp_operation send;

    (void)state;
    internal_sides_open(&from, &to);
    send = tagged(OFP_TSEND, from.peer, 1, "x", 1, 1);
    assert_int_equal(ofp_post(from.endpoint, &send, 1), 1);
    assert_int_equal(next_completion(&from, &to).error, 0);
    shm_link_of(&ofpi_peer_find_at((struct ofpi_endpoint *)from.endpoint, from.peer)->base)->segment.knows = 0;
    assert_int_equal(internal_post(&from, tagged(OFP_INTERNAL_SEND, from.peer, 1, "x", 1, 0), &sent), -EOPNOTSUPP);
    side_close(&from);
    side_close(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_internal_meets_internal),
        cmocka_unit_test(test_nobody_else_sees_it),
        cmocka_unit_test(test_an_owner_that_does_not_know_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
