/* SPDX-License-Identifier: BSD-3-Clause */
/* What a packet channel says of a path is what the endpoint reports of the peer, until the path has ended. */
#include "rdm_fixture.h"

#include "ofipy/connect.h"

static struct side a, b;

static bool is_proven(const struct side *side)
{
    struct ofp_security security;

    assert_int_equal(ofp_peer_security(side->endpoint, side->peer, &security), 0);
    assert_int_equal(security.encrypted, 0);
    return security.proven;
}

/* Connect; on the side that requests the path, the channel says whether the peer has proved the key. */
static void connect_sides(bool proves)
{
    static uint64_t out;
    struct ofp_operation send;

    rdm_side_open(&a, RDMFAKE_PACKETS, 0);
    rdm_side_open(&b, RDMFAKE_PACKETS, 0);
    sides_meet(&a, &b);
    send = tagged(OFP_TSEND, a.peer, 1, &out, sizeof(out), 7);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    assert_false(ofp_list_empty(&rdm_of(&a)->paths));
    rdm_path_of(&a)->base.proven = proves;
    assert_false(is_proven(&a));
    assert_int_equal(next_completion(&a, &b).error, 0);
}

static void test_a_path_that_is_proven(void **state)
{
    (void)state;
    connect_sides(true);
    assert_true(is_proven(&a));
    assert_false(is_proven(&b));
    side_close(&b);
    for (int i = 0; i < 1000 && is_proven(&a); i++) {
        ofp_domain_progress(a.domain);
        usleep(1000);
    }
    assert_false(is_proven(&a));
    side_close(&a);
}

static void test_a_channel_that_says_nothing(void **state)
{
    (void)state;
    connect_sides(false);
    assert_false(is_proven(&a));
    assert_false(is_proven(&b));
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_that_is_proven),
        cmocka_unit_test(test_a_channel_that_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
