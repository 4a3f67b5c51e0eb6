/* SPDX-License-Identifier: BSD-3-Clause */
/* The log, and the texts of error codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ofipy/ofp.h"

static int level;
static char provider[32], text[OFP_TEXT_MAX];

static int next(void) { return ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)); }

static int empty_log(void **state)
{
    (void)state;
    ofp_log_set_level(OFP_LOG_WARNING);
    while (next())
        ;
    return 0;
}

static void test_records_come_in_order(void **state)
{
    (void)state;
    assert_false(ofp_log_waiting());
    ofpi_log_write(OFP_LOG_WARNING, "shm", "%s %d", "first", 1);
    ofpi_log_write(OFP_LOG_ERROR, "tcp", "second");
    assert_true(ofp_log_waiting());
    assert_int_equal(next(), 1);
    assert_int_equal(level, OFP_LOG_WARNING);
    assert_string_equal(provider, "shm");
    assert_string_equal(text, "first 1");
    assert_int_equal(next(), 1);
    assert_int_equal(level, OFP_LOG_ERROR);
    assert_string_equal(text, "second");
    assert_int_equal(next(), 0);
    assert_false(ofp_log_waiting());
}

static void test_level_filters(void **state)
{
    (void)state;
    ofpi_log_write(OFP_LOG_INFO, "core", "not wanted");
    assert_false(ofp_log_waiting());
    ofp_log_set_level(OFP_LOG_DEBUG);
    ofpi_log_write(OFP_LOG_DEBUG, "core", "wanted");
    assert_int_equal(next(), 1);
    assert_string_equal(text, "wanted");
    ofp_log_set_level(OFP_LOG_ERROR);
    ofpi_log_write(OFP_LOG_WARNING, "core", "not wanted");
    assert_false(ofp_log_waiting());
}

static void test_loss_is_told_once_and_the_newest_stay(void **state)
{
    enum { WRITTEN = 2000 };
    unsigned long long lost = 0;
    int first = -1, last = -1, taken = 0;

    (void)state;
    for (int i = 0; i < WRITTEN; i++)
        ofpi_log_write(OFP_LOG_WARNING, "core", "%d", i);
    assert_int_equal(next(), 1);
    assert_int_equal(level, OFP_LOG_WARNING);
    assert_int_equal(sscanf(text, "%llu log records were lost", &lost), 1);
    while (next()) {
        assert_int_equal(sscanf(text, "%d", &last), 1);
        if (first < 0)
            first = last;
        assert_int_equal(last, first + taken);
        taken++;
    }
    assert_int_equal(lost + (unsigned long long)taken, WRITTEN);
    assert_true(taken >= 256);
    assert_int_equal(last, WRITTEN - 1);
    assert_false(ofp_log_waiting());
}

static void test_long_texts_are_cut(void **state)
{
    char small[8], name[4];

    (void)state;
    ofpi_log_write(OFP_LOG_ERROR, "a provider with a name that is much too long", "%*d", 2 * OFP_TEXT_MAX, 1);
    assert_int_equal(ofp_log_next(&level, name, sizeof(name), small, sizeof(small)), 1);
    assert_string_equal(name, "a p");
    assert_string_equal(small, "       ");
}

static void *write_many(void *argument)
{
    for (int i = 0; i < 100; i++)
        ofpi_log_write(OFP_LOG_WARNING, argument, "%d", i);
    return NULL;
}

/* Records of one thread keep their order, whatever comes between. */
static void test_many_threads_write(void **state)
{
    static char names[4][2] = {"0", "1", "2", "3"};
    int expected[4] = {0};
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    while (next()) {
        int value, who = provider[0] - '0';

        assert_int_equal(sscanf(text, "%d", &value), 1);
        assert_int_equal(value, expected[who]++);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(expected[i], 100);
}

static void test_error_texts(void **state)
{
    static const int own[] = {OFP_ETOOSMALL, OFP_EADDRNOTAVAIL, OFP_ETRUNC,   OFP_ENOKEY,    OFP_EOVERRUN,
                              OFP_ENORX,     OFP_EPEERLOST,     OFP_EFORKED,  OFP_ETHREAD,   OFP_EREMOTE,
                              OFP_ENOREGION, OFP_EEXHAUSTED,    OFP_ETOOLONG, OFP_EPEERLEFT, OFP_EPEERDIED};

    (void)state;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        assert_string_equal(ofp_strerror(own[i]), ofp_strerror(-own[i]));
        assert_null(strstr(ofp_strerror(own[i]), "Unknown"));
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(ofp_strerror(own[i]), ofp_strerror(own[other]));
    }
    assert_string_equal(ofp_strerror(-ENOMEM), strerror(ENOMEM));
    assert_non_null(ofp_strerror(123456));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_records_come_in_order, empty_log),
        cmocka_unit_test_setup(test_level_filters, empty_log),
        cmocka_unit_test_setup(test_loss_is_told_once_and_the_newest_stay, empty_log),
        cmocka_unit_test_setup(test_long_texts_are_cut, empty_log),
        cmocka_unit_test_setup(test_many_threads_write, empty_log),
        cmocka_unit_test_setup(test_error_texts, empty_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
