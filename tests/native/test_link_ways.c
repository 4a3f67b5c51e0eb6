/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a peer is reached: chosen, given up for the next, fixed, lost, chosen anew. */
#include "link_fixture.h"

static struct ofp_event event(void)
{
    struct ofp_event found = {0};
    char data[OFP_EVENT_DATA_MAX];

    assert_int_equal(ofp_eq_read(fixture.eq, &found, data), 1);
    return found;
}

static void no_event(void)
{
    struct ofp_event found;
    char data[OFP_EVENT_DATA_MAX];

    assert_int_equal(ofp_eq_read(fixture.eq, &found, data), 0);
}

static void up(struct ofp_peer *inner)
{
    lock();
    ofp_peer_up(inner);
    unlock();
}

static void lost(struct ofp_peer *inner, int error, bool gone, const char *text)
{
    lock();
    ofp_peer_lost(inner, error, gone, text);
    unlock();
}

/* The first device takes it, and is up. */
static uint32_t met(void)
{
    uint32_t peer = neighbour();

    near.post_result = far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    up(near.called);
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().context, 1);
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
    return peer;
}

static const char *reason(const struct ofp_completion *row)
{
    static char text[OFP_TEXT_MAX];

    assert_true(ofp_reason(row->provider_error, text, sizeof(text)) >= 0);
    return text;
}

static void test_the_first_that_leads_there_is_taken(void **state)
{
    uint8_t elsewhere[16] = {1, 2, 3}, host[16];
    uint32_t here, away, only;

    (void)state;
    memcpy(host, link_domain_of(fixture.domain)->host, sizeof(host));
    here = insert(host, somebody, "n", "f");
    away = insert(elsewhere, other, "n2", "f2");
    only = insert(nobody, nobody, NULL, "f3");
    goes_over(here, "near");
    goes_over(away, "far");
    goes_over(only, "far");
    send_to(away, 1);
    assert_int_equal(near.connects, 0);
    assert_int_equal(far.connects, 1);
    assert_memory_equal(far.called->address, "f2", 2);
}

static void test_what_a_provider_does_not_reach_is_left_out(void **state)
{
    char way[8];
    uint32_t peer;

    (void)state;
    near.unreachable = true;
    peer = neighbour();
    goes_over(peer, "far");
    far.unreachable = true;
    lock();
    assert_int_equal(ofp_peer_by_identity(&link_inner_find(fixture.endpoint, 0)->base, other, false, "x", 1)->index, 1);
    unlock();
    assert_int_equal(ofp_peer_way(fixture.endpoint, 1, way, sizeof(way)), -EHOSTUNREACH);
}

static void test_a_refusal_gives_way_to_the_next(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    near.connect_result = -EACCES;
    far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    assert_int_equal(near.downs, 1);
    assert_int_equal(far.connects, 1);
    nothing_completed();
    up(far.called);
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().error, 0);
    assert_int_equal(near.posts, 0);
    assert_int_equal(far.posts, 1);
    goes_over(peer, "far");
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
    no_event();
}

static void test_so_does_a_failure_that_comes_later(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    send_to(peer, 1);
    lost(near.called, ETIMEDOUT, false, "silence");
    assert_int_equal(far.connects, 1);
    goes_over(peer, "far");
    no_event();
}

static void test_when_all_fail_the_reason_names_each(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_completion row;

    (void)state;
    near.connect_result = -EACCES;
    send_to(peer, 1);
    lost(far.called, ECONNREFUSED, false, "it refuses; ask it");
    row = completion();
    assert_int_equal(row.error, ECONNREFUSED);
    /* Who refuses listens already. */
    assert_string_equal(reason(&row), "near: no way over near, and far: it refuses; ask it");
    assert_int_equal(event().kind, OFP_EVENT_PEER_LOST);
    no_event();
    /* And the next operation tries both again. */
    send_to(peer, 2);
    assert_int_equal(near.connects, 2);
    assert_int_equal(far.connects, 2);
}

static void absent(struct ofp_peer *inner)
{
    lock();
    ofp_peer_absent(inner, "nobody listens");
    unlock();
}

static void test_who_is_absent_by_all_ways_is_asked_again(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    send_to(peer, 1);
    absent(near.called);
    assert_int_equal(far.connects, 1);
    absent(far.called);
    assert_int_equal(near.downs, 1);
    assert_int_equal(far.downs, 1);
    no_event();
    /* What comes meanwhile waits behind the first. */
    send_to(peer, 2);
    while (near.connects == 1)
        ofp_domain_progress(fixture.domain);
    assert_int_equal(near.connects, 2);
    near.post_result = OFP_POST_DONE;
    up(near.called);
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().context, 1);
    assert_int_equal(completion().context, 2);
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
}

static void test_who_refuses_by_one_way_is_not_absent(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    send_to(peer, 1);
    absent(near.called);
    lost(far.called, EACCES, false, "another key");
    assert_int_equal(completion().error, EACCES);
    assert_int_equal(event().kind, OFP_EVENT_PEER_LOST);
}

static void test_who_calls_while_absent_is_met(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    send_to(peer, 1);
    absent(near.called);
    absent(far.called);
    near.post_result = OFP_POST_DONE;
    lock();
    ofp_peer_connecting(near.called);
    ofp_peer_up(near.called);
    unlock();
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().context, 1);
    assert_int_equal(near.connects, 1);
}

static void test_the_loss_of_the_way_taken_is_that_of_the_peer_once(void **state)
{
    uint32_t peer = met();

    (void)state;
    near.post_result = OFP_POST_PENDING;
    send_to(peer, 2);
    lost(near.called, OFP_EPEERLOST, true, "it is gone");
    assert_int_equal(completion().error, OFP_EPEERLOST);
    assert_int_equal(far.connects, 0);
    assert_int_equal(near.downs, 1);
    assert_int_equal(event().kind, OFP_EVENT_PEER_LOST);
    no_event();
    send_to(peer, 3);
    assert_int_equal(near.connects, 2);
}

static void test_whoever_called_is_answered_by_that_way(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *inner;

    (void)state;
    far.post_result = OFP_POST_DONE;
    lock();
    inner = ofp_peer_by_identity(&link_inner_find(fixture.endpoint, 1)->base, somebody, false, "another", 7);
    assert_ptr_equal(inner, inner_of(peer, 1));
    ofp_peer_connecting(inner);
    ofp_peer_up(inner);
    unlock();
    goes_over(peer, "far");
    send_to(peer, 1);
    assert_int_equal(completion().error, 0);
    assert_int_equal(near.connects, 0);
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
}

static void test_ways_may_differ_by_direction(void **state)
{
    uint32_t peer = met();
    struct ofp_peer *calls = inner_of(peer, 1);

    (void)state;
    lock();
    ofp_peer_connecting(calls);
    ofp_peer_up(calls);
    unlock();
    goes_over(peer, "near");
    no_event();
    /* Nothing of ours goes there, but what the peer has sent by it may be lost. */
    lost(calls, ECONNRESET, false, NULL);
    assert_int_equal(event().kind, OFP_EVENT_PEER_LOST);
    assert_int_equal(near.called->state, OFP_PEER_LOST);
    no_event();
}

static void test_a_call_by_another_way_waits_for_our_own(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *calls = inner_of(peer, 1);

    (void)state;
    near.post_result = far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    lock();
    ofp_peer_connecting(calls);
    ofp_peer_up(calls);
    unlock();
    no_event();
    lost(near.called, ECONNREFUSED, false, NULL);
    assert_int_equal(far.connects, 0);
    goes_over(peer, "far");
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().error, 0);
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
}

/* It has lost us, and calls before we have noticed. */
static void test_a_call_during_the_loss_begins_anew(void **state)
{
    uint32_t peer = met();
    struct ofp_peer *calls = inner_of(peer, 1);

    (void)state;
    lock();
    ofp_peer_connecting(calls);
    ofp_peer_lost(near.called, ECONNRESET, false, NULL);
    assert_int_equal(calls->state, OFP_PEER_CONNECTING);
    ofp_peer_up(calls);
    unlock();
    goes_over(peer, "far");
    assert_int_equal(event().kind, OFP_EVENT_PEER_LOST);
    assert_int_equal(event().kind, OFP_EVENT_PEER_UP);
    no_event();
}

/* --------------------------------------------------------------------------------------------------------------- who it is */

static void test_another_endpoint_is_refused_by_name(void **state)
{
    uint32_t peer = neighbour();
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    send_to(peer, 1);
    lock();
    assert_int_equal(ofp_peer_identified(near.called, somebody, text, sizeof(text)), 0);
    assert_int_equal(ofp_peer_identified(near.called, other, text, sizeof(text)), -ECONNREFUSED);
    unlock();
    assert_non_null(strstr(text, "another endpoint"));
}

static void test_who_calls_is_known_by_any_part_of_the_address(void **state)
{
    uint32_t stated = neighbour(), text = insert(nobody, nobody, "t", NULL);
    struct ofp_endpoint *inners[] = {&link_inner_find(fixture.endpoint, 0)->base,
                                     &link_inner_find(fixture.endpoint, 1)->base};
    struct ofp_peer *stranger;

    (void)state;
    lock();
    assert_ptr_equal(ofp_peer_by_identity(inners[1], somebody, false, "elsewhere", 9), inner_of(stated, 1));
    assert_ptr_equal(ofp_peer_by_address(inners[0], "n", 1), inner_of(stated, 0));
    assert_ptr_equal(ofp_peer_by_identity(inners[0], other, false, "t", 1), inner_of(text, 0));
    /* What was learned holds for the other way, too. */
    assert_ptr_equal(ofp_peer_by_identity(inners[1], other, false, "u", 1), inner_of(text, 1));
    /* Another one at the same address is a peer of its own. */
    stranger = ofp_peer_by_identity(inners[0], (const uint8_t[16]){5}, true, "n", 1);
    assert_ptr_not_equal(stranger, inner_of(stated, 0));
    assert_true(stranger->connects_only);
    unlock();
    /* Whoever was met as a stranger is the peer of the address that is inserted later, and known by all of it. */
    assert_int_equal(insert(nobody, (const uint8_t[16]){5}, "n5", "f5"), stranger->index);
    goes_over(stranger->index, "near");
    assert_memory_equal(inner_of(stranger->index, 1)->address, "f5", 2);
}

static void test_a_text_and_the_address_are_one_peer(void **state)
{
    uint32_t text = insert(nobody, nobody, "n", "f");

    (void)state;
    assert_int_equal(insert(nobody, somebody, "n", "f"), text);
    assert_int_equal(insert(nobody, nobody, "n", "f"), text);
    assert_memory_equal(link_peer_of(link_lane_of(inner_of(text, 0))->outer)->identity, somebody, 16);
}

static void test_one_met_before_under_another_address_is_named(void **state)
{
    uint32_t stated = neighbour(), text = insert(nobody, nobody, "alias", NULL);
    char why[OFP_TEXT_MAX] = "", name[16];

    (void)state;
    snprintf(name, sizeof(name), "peer %u", stated);
    send_to(text, 1);
    lock();
    assert_int_equal(ofp_peer_identified(near.called, somebody, why, sizeof(why)), -ECONNREFUSED);
    unlock();
    assert_non_null(strstr(why, name));
}

static void test_a_removed_peer_is_not_found(void **state)
{
    uint32_t peer = neighbour(), before = inner_of(peer, 0)->index;
    struct ofp_peer *after;

    (void)state;
    assert_int_equal(ofp_av_remove(fixture.av, peer), 0);
    lock();
    after = ofp_peer_by_identity(&link_inner_find(fixture.endpoint, 0)->base, somebody, false, "n", 1);
    unlock();
    assert_int_not_equal(before, after->index);
}

/* ---------------------------------------------------------------------------------------------------------- opening, info */

static void test_the_number_of_the_network_is_the_name_within_the_host(void **state)
{
    char text[OFP_TEXT_MAX];

    (void)state;
    near.open_results[0] = -EADDRINUSE;
    assert_int_equal(try_endpoint(NULL, text), 0);
    assert_int_equal(far.opens, 2);
    assert_int_equal(far.closes, 1);
    assert_string_equal(near.service, far.service);
}

static void test_a_service_that_one_of_them_cannot_have_is_refused(void **state)
{
    char text[OFP_TEXT_MAX];

    (void)state;
    near.open_results[0] = -EADDRINUSE;
    assert_int_equal(try_endpoint("7471", text), -EADDRINUSE);
    assert_non_null(strstr(text, "near"));
    assert_int_equal(far.closes, 1);
    assert_int_equal(near.closes, 0);
}

static void test_the_whole_can_what_all_can(void **state)
{
    struct ofp_info info = fixture.info;

    (void)state;
    assert_string_equal(info.provider, "link:near+far");
    assert_string_equal(info.domain, "near+far");
    assert_int_equal(info.msg_order, OFP_ORDER_SAS);
    assert_int_equal(info.max_msg_size, 1000);
    assert_int_equal(info.inject_size, 32);
    assert_true(info.caps & OFP_CAP_LOCAL_COMM && info.caps & OFP_CAP_REMOTE_COMM && info.caps & OFP_CAP_RMA);
}

static void refused(const char *name, const char *why)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX] = "";

    assert_int_equal(infos_of(name, infos, text), 0);
    if (!strstr(text, why))
        fail_msg("\"%s\" is not in \"%s\"", why, text);
}

static void test_names_that_cannot_be_are_refused(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    refused("link:near+near", "near cannot be part of link: it is named twice");
    refused("link:near+nix", "nix cannot be part of link: there is no such provider");
    refused("link:link", "it is made of others itself");
    refused("link:", "there is no such provider");
    refused("link:near+", "there is no such provider");
    refused("link:a+b+c+d+e", "three are the most");
    assert_int_equal(infos_of("link:far", infos, text), 1);
    assert_int_equal(infos_of("link:far+near", infos, text), 1);
    assert_string_equal(infos[0].domain, "far+near");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_endpoint, close_all)
#define BEFORE(test) cmocka_unit_test_setup_teardown(test, open_domain, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_the_first_that_leads_there_is_taken),
        WITH(test_what_a_provider_does_not_reach_is_left_out),
        WITH(test_a_refusal_gives_way_to_the_next),
        WITH(test_so_does_a_failure_that_comes_later),
        WITH(test_when_all_fail_the_reason_names_each),
        WITH(test_who_is_absent_by_all_ways_is_asked_again),
        WITH(test_who_refuses_by_one_way_is_not_absent),
        WITH(test_who_calls_while_absent_is_met),
        WITH(test_the_loss_of_the_way_taken_is_that_of_the_peer_once),
        WITH(test_whoever_called_is_answered_by_that_way),
        WITH(test_ways_may_differ_by_direction),
        WITH(test_a_call_by_another_way_waits_for_our_own),
        WITH(test_a_call_during_the_loss_begins_anew),
        WITH(test_another_endpoint_is_refused_by_name),
        WITH(test_who_calls_is_known_by_any_part_of_the_address),
        WITH(test_a_text_and_the_address_are_one_peer),
        WITH(test_one_met_before_under_another_address_is_named),
        WITH(test_a_removed_peer_is_not_found),
        BEFORE(test_the_number_of_the_network_is_the_name_within_the_host),
        BEFORE(test_a_service_that_one_of_them_cannot_have_is_refused),
        WITH(test_the_whole_can_what_all_can),
        WITH(test_names_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
