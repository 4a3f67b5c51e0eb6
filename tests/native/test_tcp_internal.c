/* SPDX-License-Identifier: BSD-3-Clause */
/* The internal channel over TCP, and towards peers without the extension, or with one that does not offer it. */
#include "internal_channel.h"
#include "object/peer.h"
#include "objects.h"

static void test_a_peer_without_the_extension(void **state)
{
    struct internal_end sent = {0};
    struct side from, to;

    (void)state;
    setenv("OFIPY_TCP_EXTENSION", "no", 1);
    internal_sides_open(&from, &to);
    unsetenv("OFIPY_TCP_EXTENSION");
    assert_int_equal(internal_post(&from, tagged(OFP_INTERNAL_SEND, from.peer, 1, "x", 1, 0), &sent), 0);
    internal_await(&sent, &from, &to);
    assert_int_equal(sent.last.error, EOPNOTSUPP);
    side_close(&from);
    side_close(&to);
}

static void test_an_extension_that_does_not_offer_it(void **state)
{
    struct internal_end sent = {0};
    struct side from, to;
    struct ofp_operation send;

    (void)state;
    internal_sides_open(&from, &to);
    send = tagged(OFP_TSEND, from.peer, 1, "x", 1, 1);
    assert_int_equal(ofp_post(from.endpoint, &send, 1), 1);
    assert_int_equal(next_completion(&from, &to).error, 0);
    tcp_peer_of(&ofpi_peer_find_at((struct ofpi_endpoint *)from.endpoint, from.peer)->base)
        ->connection->knows_internal = false;
    assert_int_equal(internal_post(&from, tagged(OFP_INTERNAL_SEND, from.peer, 1, "x", 1, 0), &sent), -EOPNOTSUPP);
    side_close(&from);
    side_close(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_internal_meets_internal),
        cmocka_unit_test(test_nobody_else_sees_it),
        cmocka_unit_test(test_a_peer_without_the_extension),
        cmocka_unit_test(test_an_extension_that_does_not_offer_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
