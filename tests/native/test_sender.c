/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of senders in remote CQ data: they are read as they were written, and what users put there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ofipy/sender.h"

#define LARGEST (((uint64_t)1 << OFP_SENDER_BITS) - 1)

/* Steps that meet every bit. */
#define STEP 0x1234567ull

static void test_names_are_read_as_written(void **state)
{
    (void)state;
    for (uint64_t who = 1; who <= LARGEST; who += STEP * STEP / 1024)
        assert_true(ofp_sender_of(ofp_sender_name(who)) == who);
    assert_true(ofp_sender_of(ofp_sender_name(LARGEST)) == LARGEST);
}

static void test_small_numbers_are_none(void **state)
{
    (void)state;
    for (uint64_t data = 0; data < 1 << 24; data++)
        assert_true(ofp_sender_of(data) == 0);
    for (uint64_t data = 0; data <= LARGEST; data += STEP)
        assert_true(ofp_sender_of(data) == 0);
    assert_true(ofp_sender_of(LARGEST) == 0);
}

static void test_few_others_are_one(void **state)
{
    int names = 0;
    uint64_t data = 1;

    (void)state;
    for (int i = 0; i < 1 << 24; i++) {
        data = data * 6364136223846793005ull + 1442695040888963407ull;
        names += ofp_sender_of(data) != 0;
    }
    /* 256 are to be expected. */
    assert_in_range(names, 128, 512);
}

static void test_addresses(void **state)
{
    struct sockaddr_in address = {.sin_port = htons(7471), .sin_addr.s_addr = htonl(0xc0000201)};

    (void)state;
    assert_true(ofp_sender_of_ipv4(&address) == (7471ull << 32 | 0xc0000201));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_read_as_written),
        cmocka_unit_test(test_small_numbers_are_none),
        cmocka_unit_test(test_few_others_are_one),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
