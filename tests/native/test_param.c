/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "ofipy/ofp.h"

static const struct ofp_param declared[] = {
    {"TEST_TEXT", OFP_PARAM_STRING, "plain", "a text", 0, 0},
    {"TEST_SIZE", OFP_PARAM_SIZE, "4k", "a size", 0, INT64_MAX},
    {"TEST_INT", OFP_PARAM_INT, "-5", "a number", -100, 4096},
    {"TEST_BOOL", OFP_PARAM_BOOL, "yes", "a truth value", 0, 0},
    {"TEST_BOUNDED", OFP_PARAM_SIZE, "64k", "a size with bounds", 4096, 1 << 20},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

static int level;
static char provider[32], text[OFP_TEXT_MAX];

static int next_log(void) { return ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)); }

static int fresh(void **state)
{
    (void)state;
    while (next_log())
        ;
    for (const struct ofp_param *param = declared; param->name; param++) {
        char name[64];

        snprintf(name, sizeof(name), "OFIPY_%s", param->name);
        unsetenv(name);
    }
    ofpi_param_register(declared);
    return 0;
}

static struct ofp_param_info info_of(const char *name)
{
    struct ofp_param_info info = {0};

    for (int i = 0; i < ofp_param_count(); i++) {
        assert_int_equal(ofp_param_get(i, &info), 0);
        if (strcmp(info.name, name) == 0)
            return info;
    }
    fail_msg("%s is not declared", name);
    return info;
}

static void test_defaults(void **state)
{
    (void)state;
    assert_string_equal(ofpi_param_get_string("TEST_TEXT"), "plain");
    assert_int_equal(ofpi_param_get_size("TEST_SIZE"), 4096);
    assert_int_equal(ofpi_param_get_int("TEST_INT"), -5);
    assert_true(ofpi_param_get_bool("TEST_BOOL"));
    assert_string_equal(info_of("TEST_SIZE").source, "default");
    assert_string_equal(info_of("TEST_SIZE").type, "size");
    assert_string_equal(info_of("TEST_SIZE").help, "a size");
}

static void test_core_parameters(void **state)
{
    (void)state;
    assert_int_equal(ofpi_param_get_int("CONNECT_TIMEOUT"), 10);
    assert_int_equal(ofpi_param_get_int("SPIN_TIME"), 20);
    assert_int_equal(ofpi_param_get_size("TX_QUEUE"), 4096);
    assert_int_equal(ofpi_param_get_size("CQ_SIZE"), 4096);
    assert_int_equal(ofpi_param_get_size("UNEXPECTED_SIZE"), 64 << 20);
    assert_int_equal(ofpi_param_get_size("ANNOUNCEMENTS"), 1 << 18);
    assert_string_equal(info_of("PROVIDER").type, "string");
    assert_string_equal(info_of("CONFIG").type, "string");
    assert_string_equal(info_of("LOG").default_value, "warning");
}

static void test_unknown_names(void **state)
{
    struct ofp_param_info info;

    (void)state;
    assert_null(ofp_param_value("TEST_NOBODY"));
    assert_null(ofpi_param_get_string("TEST_NOBODY"));
    assert_int_equal(ofpi_param_get_size("TEST_NOBODY"), 0);
    assert_false(ofpi_param_get_bool("TEST_NOBODY"));
    assert_int_equal(ofp_param_set("TEST_NOBODY", "1"), -ENOENT);
    assert_int_equal(ofp_param_get(-1, &info), -EINVAL);
    assert_int_equal(ofp_param_get(ofp_param_count(), &info), -EINVAL);
}

static void test_environment_wins_over_file_wins_over_default(void **state)
{
    const char *from_file;

    (void)state;
    assert_int_equal(ofp_param_set("TEST_TEXT", "from the file"), 0);
    from_file = ofp_param_value("TEST_TEXT");
    assert_string_equal(from_file, "from the file");
    assert_string_equal(info_of("TEST_TEXT").source, "file");
    setenv("OFIPY_TEST_TEXT", "from outside", 1);
    assert_string_equal(ofp_param_value("TEST_TEXT"), "from outside");
    assert_string_equal(info_of("TEST_TEXT").source, "environment");
    assert_int_equal(ofp_param_set("TEST_TEXT", "another file"), 0);
    assert_string_equal(ofp_param_value("TEST_TEXT"), "from outside");
    unsetenv("OFIPY_TEST_TEXT");
    assert_string_equal(ofp_param_value("TEST_TEXT"), "another file");
    /* A text once handed out stays. */
    assert_string_equal(from_file, "from the file");
}

static void test_empty_variable_counts_as_not_set(void **state)
{
    (void)state;
    setenv("OFIPY_TEST_INT", "", 1);
    assert_int_equal(ofpi_param_get_int("TEST_INT"), -5);
    assert_string_equal(info_of("TEST_INT").source, "default");
    assert_false(ofp_log_waiting());
}

static void assert_size(const char *written, uint64_t value)
{
    assert_int_equal(ofp_param_set("TEST_SIZE", written), 0);
    assert_int_equal(ofpi_param_get_size("TEST_SIZE"), value);
}

static void test_sizes(void **state)
{
    static const char *const bad[] = {"",
                                      "k",
                                      "-1",
                                      " 1",
                                      "+1",
                                      "1 ",
                                      "1kb",
                                      "1t",
                                      "0x1",
                                      "1.5k",
                                      "1k ",
                                      "1kk",
                                      "9223372036854775808",
                                      "8589934592g",
                                      "99999999999999999999"};

    (void)state;
    assert_size("0", 0);
    assert_size("010", 10);
    assert_size("64k", 65536);
    assert_size("64K", 65536);
    assert_size("1m", 1 << 20);
    assert_size("2g", 2ull << 30);
    assert_size("9223372036854775807", INT64_MAX);
    assert_size("8589934591g", 8589934591ull << 30);
    assert_size("7", 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ofp_param_set("TEST_SIZE", bad[i]), -EINVAL);
        assert_int_equal(ofpi_param_get_size("TEST_SIZE"), 7);
    }
}

static void test_numbers_and_truth_values(void **state)
{
    (void)state;
    assert_int_equal(ofp_param_set("TEST_INT", "-12"), 0);
    assert_int_equal(ofpi_param_get_int("TEST_INT"), -12);
    assert_int_equal(ofpi_param_get_size("TEST_INT"), 0);
    assert_int_equal(ofp_param_set("TEST_INT", "1k"), -EINVAL);
    assert_int_equal(ofp_param_set("TEST_INT", "--1"), -EINVAL);
    assert_int_equal(ofp_param_set("TEST_INT", ""), -EINVAL);
    assert_int_equal(ofp_param_set("TEST_BOOL", "OFF"), 0);
    assert_false(ofpi_param_get_bool("TEST_BOOL"));
    assert_int_equal(ofp_param_set("TEST_BOOL", "true"), 0);
    assert_true(ofpi_param_get_bool("TEST_BOOL"));
    assert_int_equal(ofp_param_set("TEST_BOOL", "maybe"), -EINVAL);
}

static void test_malformed_environment_is_named_once_and_the_default_holds(void **state)
{
    (void)state;
    setenv("OFIPY_TEST_SIZE", "lots", 1);
    assert_int_equal(ofpi_param_get_size("TEST_SIZE"), 4096);
    assert_int_equal(ofpi_param_get_size("TEST_SIZE"), 4096);
    assert_string_equal(info_of("TEST_SIZE").source, "default");
    assert_int_equal(next_log(), 1);
    assert_int_equal(level, OFP_LOG_WARNING);
    assert_non_null(strstr(text, "OFIPY_TEST_SIZE"));
    assert_non_null(strstr(text, "lots"));
    assert_int_equal(next_log(), 0);
}

static void test_bounds(void **state)
{
    static const char *const bad[] = {"4095", "0", "1025k", "1048577", "2m"};

    (void)state;
    assert_string_equal(info_of("TEST_BOUNDED").range, "4k to 1m");
    assert_string_equal(info_of("TEST_INT").range, "-100 to 4096");
    assert_string_equal(info_of("TEST_BOOL").range, "yes or no");
    assert_string_equal(info_of("TEST_TEXT").range, "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ofp_param_set("TEST_BOUNDED", bad[i]), -EINVAL);
        setenv("OFIPY_TEST_BOUNDED", bad[i], 1);
        assert_int_equal(ofpi_param_get_size("TEST_BOUNDED"), 65536);
        assert_string_equal(info_of("TEST_BOUNDED").refused, bad[i]);
        assert_int_equal(next_log(), 1);
        assert_non_null(strstr(text, "4k to 1m"));
        assert_int_equal(next_log(), 0);
    }
    setenv("OFIPY_TEST_BOUNDED", "4k", 1);
    assert_int_equal(ofpi_param_get_size("TEST_BOUNDED"), 4096);
    assert_null(info_of("TEST_BOUNDED").refused);
    unsetenv("OFIPY_TEST_BOUNDED");
    assert_int_equal(ofp_param_set("TEST_BOUNDED", "1m"), 0);
    assert_int_equal(ofpi_param_get_size("TEST_BOUNDED"), 1 << 20);
    assert_int_equal(ofp_param_set("TEST_INT", "-101"), -EINVAL);
    assert_int_equal(ofp_param_set("TEST_INT", "-100"), 0);
}

static void test_a_default_lies_within_its_range(void **state)
{
    struct ofp_param wrong[] = {declared[1], {"TEST_WRONG", OFP_PARAM_INT, "3", "", 4, 5}, declared[5]};

    (void)state;
    assert_null(ofpi_param_find_misdeclared(declared));
    assert_string_equal(ofpi_param_find_misdeclared(wrong), "TEST_WRONG");
    wrong[1].default_value = "4";
    assert_null(ofpi_param_find_misdeclared(wrong));
}

static void test_second_declaration_is_harmless(void **state)
{
    int before = ofp_param_count();

    (void)state;
    assert_int_equal(ofp_param_set("TEST_TEXT", "kept"), 0);
    ofpi_param_register(declared);
    assert_int_equal(ofp_param_count(), before);
    assert_string_equal(ofp_param_value("TEST_TEXT"), "kept");
}

static void test_table_grows(void **state)
{
    enum { MANY = 200 };
    static char names[MANY][24];
    int before = ofp_param_count();

    (void)state;
    for (int i = 0; i < MANY; i++) {
        struct ofp_param one[2] = {{names[i], OFP_PARAM_INT, "3", "", 0, 9},
                                   {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0}};

        snprintf(names[i], sizeof(names[i]), "MANY_%d", i);
        ofpi_param_register(one);
    }
    assert_int_equal(ofp_param_count(), before + MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ofpi_param_get_int(names[i]), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* In this order: what is set from a file cannot be taken back. */
        cmocka_unit_test_setup(test_defaults, fresh),
        cmocka_unit_test_setup(test_core_parameters, fresh),
        cmocka_unit_test_setup(test_malformed_environment_is_named_once_and_the_default_holds, fresh),
        cmocka_unit_test_setup(test_empty_variable_counts_as_not_set, fresh),
        cmocka_unit_test_setup(test_unknown_names, fresh),
        cmocka_unit_test_setup(test_environment_wins_over_file_wins_over_default, fresh),
        cmocka_unit_test_setup(test_sizes, fresh),
        cmocka_unit_test_setup(test_bounds, fresh),
        cmocka_unit_test_setup(test_a_default_lies_within_its_range, fresh),
        cmocka_unit_test_setup(test_numbers_and_truth_values, fresh),
        cmocka_unit_test_setup(test_second_declaration_is_harmless, fresh),
        cmocka_unit_test_setup(test_table_grows, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
