/* SPDX-License-Identifier: BSD-3-Clause */
/* Two networks in one endpoint: a peer is reached by the first that both have. */
#include "link_fixture.h"

static const uint8_t elsewhere[16] = {1, 2, 3};

static int open_both(void **state)
{
    (void)state;
    return open_domain_of("link:near+far+wide");
}

static void open_it(const char *service)
{
    char text[OFP_TEXT_MAX];

    assert_int_equal(try_endpoint(service, text), 0);
}

static void test_the_first_that_both_have_is_taken(void **state)
{
    uint32_t both, few;

    (void)state;
    open_it(NULL);
    both = insert_at(elsewhere, somebody, "n", "f", "w");
    few = insert_at(elsewhere, other, "n", NULL, "w");
    goes_over(both, "far");
    goes_over(few, "wide");
    send_to(few, 1);
    assert_int_equal(far.connects, 0);
    assert_int_equal(wide.connects, 1);
    assert_memory_equal(wide.called->address, "w", 1);
}

static void test_one_that_refuses_gives_way_to_the_other(void **state)
{
    uint32_t peer;

    (void)state;
    open_it(NULL);
    peer = insert_at(elsewhere, somebody, NULL, "f", "w");
    far.connect_result = -ENOMEM;
    send_to(peer, 1);
    assert_int_equal(wide.connects, 1);
    goes_over(peer, "wide");
}

static void test_when_both_fail_the_reason_names_both(void **state)
{
    struct ofp_completion row;
    char text[OFP_TEXT_MAX];
    uint32_t peer;

    (void)state;
    open_it(NULL);
    peer = insert_at(elsewhere, somebody, "n", "f", "w");
    far.connect_result = -ENOMEM;
    wide.connect_result = -EHOSTUNREACH;
    send_to(peer, 1);
    ofp_domain_progress(fixture.domain);
    row = completion();
    assert_int_equal(row.error, EHOSTUNREACH);
    assert_true(ofp_reason(row.provider_error, text, sizeof(text)) >= 0);
    assert_non_null(strstr(text, "far: no way over far"));
    assert_non_null(strstr(text, "wide: no way over wide"));
    assert_int_equal(near.connects, 0);
}

static void test_one_number_for_all(void **state)
{
    (void)state;
    open_it(NULL);
    assert_string_equal(wide.service, far.service);
    assert_string_equal(near.service, far.service);
}

/* Another number for all is tried, and nothing is left open. */
static void test_a_number_that_one_has_not_is_nobody_s(void **state)
{
    (void)state;
    wide.open_results[0] = near.open_results[0] = -EADDRINUSE;
    open_it(NULL);
    assert_int_equal(far.opens, 3);
    assert_int_equal(far.closes, 2);
    assert_int_equal(wide.opens, 3);
    assert_int_equal(wide.closes, 1);
    assert_int_equal(near.opens, 2);
    assert_int_equal(near.closes, 0);
    assert_string_equal(wide.service, far.service);
    assert_string_equal(near.service, far.service);
}

static void test_of_the_first_network_the_best_place_is_offered(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    near.places = far.places = wide.places = 2;
    assert_int_equal(infos_of("link:near+far+wide", infos, text), 2);
    assert_string_equal(infos[0].domain, "near+far+wide");
    assert_string_equal(infos[1].domain, "near+far+wide1");
}

static int at_node(const char *node, struct ofp_info *info, char *text)
{
    *info = fixture.info;
    return fixture.provider->at_node(info, node, text, OFP_TEXT_MAX);
}

static void test_networks_that_are_not_at_a_node_are_left_out(void **state)
{
    struct ofp_info info;
    char text[OFP_TEXT_MAX];

    (void)state;
    far.places = 2;
    assert_int_equal(at_node(" far and wide ", &info, text), 0);
    assert_string_equal(info.domain, "near+far+wide");
    assert_int_equal(at_node(" far1 and wide ", &info, text), 0);
    assert_string_equal(info.domain, "near+far1+wide");
    assert_int_equal(at_node(" wide ", &info, text), 0);
    assert_string_equal(info.domain, "near+wide");
    assert_int_equal(at_node(" far ", &info, text), 0);
    assert_string_equal(info.domain, "near+far");
    assert_int_equal(at_node(" near ", &info, text), -EHOSTUNREACH);
    assert_string_equal(text, "wide is not at near ");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_both, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_the_first_that_both_have_is_taken),
        WITH(test_one_that_refuses_gives_way_to_the_other),
        WITH(test_when_both_fail_the_reason_names_both),
        WITH(test_one_number_for_all),
        WITH(test_a_number_that_one_has_not_is_nobody_s),
        WITH(test_of_the_first_network_the_best_place_is_offered),
        WITH(test_networks_that_are_not_at_a_node_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
