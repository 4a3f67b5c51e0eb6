/* SPDX-License-Identifier: BSD-3-Clause */
/* The accounts of sources: who has spent its credit waits, for a hundred times what it cost, or until a proof. */
#include "connection/source.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MILLISECOND UINT64_C(1000000)

/* So many steps of a millisecond. */
static void charge_steps(struct tcp_source *source, int count, uint64_t now)
{
    for (int i = 0; i < count; i++)
        tcp_source_charge(source, MILLISECOND, now);
}

static union tcp_address parse_address(const char *text)
{
    union tcp_address address = {0};

    if (strchr(text, ':')) {
        address.v6.sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &address.v6.sin6_addr), 1);
    } else {
        address.v4.sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &address.v4.sin_addr), 1);
    }
    return address;
}

static uint8_t find_account(const char *text)
{
    union tcp_address address = parse_address(text);

    return tcp_source_find(&address);
}

static void test_a_network_shares_an_account(void **state)
{
    (void)state;
    assert_int_equal(find_account("2001:db8:1:2::1"), find_account("2001:db8:1:2:ffff::9"));
    assert_int_not_equal(find_account("2001:db8:1:2::1"), find_account("2001:db8:1:3::1"));
    assert_int_not_equal(find_account("192.0.2.1"), find_account("192.0.2.2"));
    assert_in_range(find_account("255.255.255.255"), 0, TCP_SOURCES - 1);
}

static void test_a_source_with_credit_has_its_turn(void **state)
{
    struct tcp_source source = {0};
    uint64_t now = 5000 * MILLISECOND;

    (void)state;
    assert_true(tcp_source_compute_turn(&source, now) == now);
    for (int i = 0; i < 24; i++) {
        now += MILLISECOND;
        tcp_source_charge(&source, MILLISECOND, now);
        assert_true(tcp_source_compute_turn(&source, now) == now);
    }
}

static void test_a_source_that_has_spent_it_gets_a_hundredth(void **state)
{
    struct tcp_source source = {0};
    uint64_t now = 5000 * MILLISECOND, turn;

    (void)state;
    charge_steps(&source, 25, now);
    for (int i = 0; i < 100; i++) {
        tcp_source_charge(&source, MILLISECOND, now);
        turn = tcp_source_compute_turn(&source, now);
        assert_true(turn == now + 100 * MILLISECOND);
        /* Whoever looks often gets no more, nor less. */
        for (uint64_t moment = now; moment < turn; moment += MILLISECOND / 7)
            assert_in_range(tcp_source_compute_turn(&source, moment), turn - 100, turn + 100);
        now = turn;
        assert_true(tcp_source_compute_turn(&source, now) == now);
    }
}

static void test_a_proof_clears_the_account(void **state)
{
    struct tcp_source source = {0};
    uint64_t now = 5000 * MILLISECOND;

    (void)state;
    charge_steps(&source, 900, now);
    assert_true(tcp_source_compute_turn(&source, now) > now);
    tcp_source_clear(&source);
    assert_true(tcp_source_compute_turn(&source, now) == now);
}

/* On a busy machine a step takes as long as others run. */
static void test_a_step_that_was_interrupted_costs_little(void **state)
{
    struct tcp_source source = {0};
    uint64_t now = 5000 * MILLISECOND;

    (void)state;
    for (int i = 0; i < 25; i++)
        tcp_source_charge(&source, 200 * MILLISECOND, now);
    assert_true(tcp_source_compute_turn(&source, now) == now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_network_shares_an_account),
        cmocka_unit_test(test_a_source_with_credit_has_its_turn),
        cmocka_unit_test(test_a_source_that_has_spent_it_gets_a_hundredth),
        cmocka_unit_test(test_a_proof_clears_the_account),
        cmocka_unit_test(test_a_step_that_was_interrupted_costs_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
