/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences by number: the same one twice has one number, and the oldest are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "ofipy/ofp.h"

static void check(int code, const char *expected)
{
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_reason(code, text, sizeof(text)), expected != NULL);
    assert_string_equal(text, expected ? expected : "");
}

static void test_numbers(void **state)
{
    int first, second;

    (void)state;
    check(0, NULL);
    check(OFP_REASON - 1, NULL);
    check(OFP_REASON, NULL);
    check(INT32_MAX, NULL);
    check(INT32_MIN, NULL);
    first = ofpi_reason_store("the first");
    assert_true(first >= OFP_REASON);
    second = ofpi_reason_store("the second");
    assert_int_not_equal(first, second);
    check(first, "the first");
    check(second, "the second");
    assert_int_equal(ofpi_reason_store("the first"), first);
    check(second + 1, NULL);
}

static void test_many(void **state)
{
    enum { MANY = 1000 };
    int codes[MANY];
    char text[32];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "number %d", i);
        codes[i] = ofpi_reason_store(text);
        check(codes[i], text);
    }
    check(codes[0], NULL);
    check(codes[MANY - 1], text);
    snprintf(text, sizeof(text), "number %d", MANY - 256);
    check(codes[MANY - 256], text);
    check(codes[MANY - 257], NULL);
}

static void test_long_ones_are_cut(void **state)
{
    char text[2 * OFP_TEXT_MAX];
    char little[4];
    int code;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    code = ofpi_reason_store(text);
    assert_int_equal(ofpi_reason_store(text), code);
    text[OFP_TEXT_MAX - 1] = 0;
    check(code, text);
    assert_int_equal(ofp_reason(code, little, sizeof(little)), 1);
    assert_string_equal(little, "xxx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_long_ones_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
