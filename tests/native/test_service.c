/* SPDX-License-Identifier: BSD-3-Clause */
/* What services are ports, what are names, and which ports these are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/service.h"
#include "ofipy/ofp.h"

/* What two versions of ofipy have to agree about. */
static void test_names_stand_for_the_same_ports_forever(void **state)
{
    static const struct {
        const char *name, *port;
    } known[] = {{"solver", "62710"}, {"Solver", "61438"}, {"weights.0", "61728"}, {"a", "65156"}};
    struct ofpi_service service;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_int_equal(ofpi_service_find(&service, known[i].name, text, sizeof(text)), 0);
        assert_string_equal(service.text, known[i].port);
        assert_in_range(atoi(service.text), OFPI_SERVICE_PORT_LOW, OFPI_SERVICE_PORT_HIGH);
    }
}

static void test_what_is_no_name_goes_through(void **state)
{
    static const char *const others[] = {"7471", "~00ff", "qp17", "qp17.lid5", ""};
    struct ofpi_service service;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(ofpi_service_find(&service, others[i], text, sizeof(text)), 0);
        assert_ptr_equal(service.text, others[i]);
    }
    assert_int_equal(ofpi_service_find(&service, NULL, text, sizeof(text)), 0);
    assert_null(service.text);
}

static void test_numbers_that_are_no_peers_port(void **state)
{
    static const char *const wrong[] = {"0", "65536", "99999", "000001", "-1", "+80", "80x", "4294967376"};
    struct ofpi_service service;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ofpi_service_find(&service, wrong[i], text, sizeof(text)), -EINVAL);
        assert_non_null(strstr(text, "the port of a peer is a number, 1 to 65535"));
    }
}

static void test_what_cannot_be_chosen(void **state)
{
    static const char *const wrong[] = {
        "",      "65536", "123456789012", "-1",
        "1.5",   "a b",   "a/b",          "a:1",
        "~00ff", "qp17",  "\xc3\xa4",     "a234567890123456789012345678901234567890123456789012345678901234"};
    static const char *const right[] = {"0", "65535", "qpsolver", "A", "a-b_c.d9"};
    struct ofpi_service service;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ofpi_service_choose(&service, wrong[i], text, sizeof(text)), -EINVAL);
        assert_non_null(strstr(text, "a port number is meant"));
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_int_equal(ofpi_service_choose(&service, right[i], text, sizeof(text)), 0);
    assert_int_equal(ofpi_service_choose(&service, NULL, text, sizeof(text)), 0);
}

static void test_a_reason_speaks_of_the_name(void **state)
{
    struct ofpi_service service;
    char text[OFP_TEXT_MAX] = "cannot bind", ignored[OFP_TEXT_MAX];

    (void)state;
    ofpi_service_find(&service, "7471", ignored, sizeof(ignored));
    ofpi_service_describe_error(&service, -EADDRINUSE, text, sizeof(text));
    assert_string_equal(text, "cannot bind");
    ofpi_service_find(&service, "solver", ignored, sizeof(ignored));
    ofpi_service_describe_error(&service, -EACCES, text, sizeof(text));
    assert_string_equal(text, "service solver, which is port 62710: cannot bind");
    ofpi_service_describe_error(&service, -EADDRINUSE, text, sizeof(text));
    assert_non_null(strstr(text, "choose another name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_stand_for_the_same_ports_forever),
        cmocka_unit_test(test_what_is_no_name_goes_through),
        cmocka_unit_test(test_numbers_that_are_no_peers_port),
        cmocka_unit_test(test_what_cannot_be_chosen),
        cmocka_unit_test(test_a_reason_speaks_of_the_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
