/* SPDX-License-Identifier: BSD-3-Clause */
/* Every mode runs at depths around those where tables grow; a wrong or missing completion would be an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "ofipy/measure.h"

static void test_every_mode(void **state)
{
    const char *modes[] = {"expected", "unexpected", "same-tag", "any-source", "masked"};
    const uint64_t depths[] = {1, 2, 33, 300, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        for (size_t j = 0; j < sizeof(depths) / sizeof(depths[0]); j++)
            assert_true(ofp_measure_match(modes[i], depths[j], 7001) > 0);
}

static void test_arguments(void **state)
{
    (void)state;
    assert_int_equal(ofp_measure_match("sorted", 1, 1), -EINVAL);
    assert_int_equal(ofp_measure_match("expected", 0, 1), -EINVAL);
    assert_int_equal(ofp_measure_match("expected", 1, 0), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_mode), cmocka_unit_test(test_arguments)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
