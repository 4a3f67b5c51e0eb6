/* SPDX-License-Identifier: BSD-3-Clause */
/* Which providers are part of link where a key is set, and what link reports of the lanes to a peer. */
#include "link_fixture.h"

#include "ofipy/connect.h"

/* Providers by names that the set `link` looks for: "verbs" does what `wide` does, "tcp" what `far` does. */
static int verbs_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    int count = wide_getinfo(infos, max, text, text_size);

    for (int i = 0; i < count; i++)
        strcpy(infos[i].provider, "verbs");
    return count;
}

static int tcp_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    int count = far_getinfo(infos, max, text, text_size);

    for (int i = 0; i < count; i++)
        strcpy(infos[i].provider, "tcp");
    return count;
}

SCRIPTED_PROVIDER(verbs)
SCRIPTED_PROVIDER(tcp)

static void set_key(bool set)
{
    /* link only tests that one is named: the providers read it. */
    setenv("OFIPY_AUTH_KEY_FILE", set ? "/a/key" : "", 1);
}

static int reset(void **state)
{
    struct ofp_provider *ignored;
    char text[OFP_TEXT_MAX];

    (void)state;
    near = (struct scripted){.name = "near", .peer_proof = OFP_PROOF_USER};
    far = (struct scripted){.name = "far", .peer_proof = OFP_PROOF_KEY};
    wide = (struct scripted){.name = "wide"};
    assert_int_equal(ofpi_provider_register(verbs_entry, &ignored, text, OFP_TEXT_MAX), 0);
    assert_int_equal(ofpi_provider_register(tcp_entry, &ignored, text, OFP_TEXT_MAX), 0);
    set_key(false);
    return 0;
}

static int unset_key(void **state)
{
    (void)state;
    unsetenv("OFIPY_AUTH_KEY_FILE");
    return 0;
}

/* How many warnings the log contains since the last call, and the text of the last one. */
static int read_warnings(char *last)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level, count = 0;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)) == 1)
        if (level >= OFP_LOG_WARNING) {
            strcpy(last, text);
            count++;
        }
    return count;
}

static void test_the_proof_of_a_set_is_the_weakest_of_its_parts(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(infos_of("link:near", infos, text), 1);
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_USER);
    assert_int_equal(infos_of("link:near+far", infos, text), 1);
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_KEY);
    assert_int_equal(infos_of("link:far+near", infos, text), 1);
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_KEY);
    assert_int_equal(infos_of("link:near+far+wide", infos, text), 1);
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_NONE);
}

static void test_a_named_provider_that_proves_no_key_is_refused(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    set_key(true);
    assert_int_equal(infos_of("link:near+far", infos, text), 1);
    assert_int_equal(infos_of("link:near+far+wide", infos, text), 0);
    assert_non_null(strstr(text, "wide cannot be part of link"));
    assert_non_null(strstr(text, "OFIPY_AUTH_KEY_FILE"));
}

static void test_an_unnamed_provider_that_proves_no_key_is_left_out_with_one_warning(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX], warning[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(infos_of("link", infos, text), 2);
    assert_string_equal(infos[0].domain, "wide+far");
    assert_string_equal(infos[1].domain, "far");
    read_warnings(warning);
    set_key(true);
    assert_int_equal(infos_of("link", infos, text), 1);
    assert_string_equal(infos[0].domain, "far");
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_KEY);
    /* The test before this one has used up the warning of this process. */
    assert_int_equal(read_warnings(warning), 0);
}

/* The first test, since the process warns once. */
static void test_the_warning_names_the_provider_and_the_key(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX], warning[OFP_TEXT_MAX] = "";

    (void)state;
    set_key(true);
    assert_int_equal(infos_of("link", infos, text), 1);
    assert_int_equal(read_warnings(warning), 1);
    assert_non_null(strstr(warning, "verbs"));
    assert_non_null(strstr(warning, "left out"));
    assert_non_null(strstr(warning, "OFIPY_AUTH_KEY_FILE"));
}

static void test_a_device_whose_peers_prove_the_key_is_kept(void **state)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    wide.peer_proof = OFP_PROOF_KEY;
    set_key(true);
    assert_int_equal(infos_of("link", infos, text), 2);
    assert_string_equal(infos[0].domain, "wide+far");
    assert_int_equal(infos[0].peer_proof, OFP_PROOF_KEY);
    assert_string_equal(infos[1].domain, "far");
}

static void test_a_set_from_before_the_key_is_refused(void **state)
{
    struct ofp_domain_attr attr = {0};
    struct ofp_domain *domain;
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(infos_of("link:near+wide", infos, text), 1);
    set_key(true);
    assert_int_equal(ofp_domain_open(fixture.provider, &infos[0], &attr, &domain, text, sizeof(text)), -EACCES);
    assert_non_null(strstr(text, "wide cannot be part of link"));
}

/* ------------------------------------------------------------------------------------------------------ what holds now */

/* A cipher suite with a known name, and one without. */
#define SUITE_A 0x1301
#define SUITE_B 0x1399

/* `cipher`: the name that is reported; NULL: not encrypted. */
static void holds(uint32_t peer, bool proven, const char *cipher)
{
    struct ofp_security security;

    memset(&security, 0xff, sizeof(security));
    assert_int_equal(ofp_peer_security(fixture.endpoint, peer, &security), 0);
    assert_int_equal(security.proven, proven);
    assert_int_equal(security.encrypted, cipher != NULL);
    assert_string_equal(security.cipher, cipher ? cipher : "");
}

static void connect_lane_with(struct ofp_peer *inner, bool proven, uint16_t cipher)
{
    lock();
    if (inner->state != OFP_PEER_CONNECTING)
        ofp_peer_connecting(inner);
    inner->proven = proven;
    inner->cipher = cipher;
    ofp_peer_up(inner);
    unlock();
}

static void lose_lane(struct ofp_peer *inner)
{
    lock();
    ofp_peer_lost(inner, ECONNRESET, false, NULL);
    unlock();
}

static void test_the_lane_in_use_is_reported_while_it_is_up(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    holds(peer, false, NULL);
    send_to(peer, 1);
    holds(peer, false, NULL);
    connect_lane_with(inner_of(peer, 0), true, SUITE_A);
    holds(peer, true, "TLS_AES_128_GCM_SHA256");
    lose_lane(inner_of(peer, 0));
    holds(peer, false, NULL);
}

static void test_an_attempt_inherits_nothing(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *lane = inner_of(peer, 0);

    (void)state;
    send_to(peer, 1);
    connect_lane_with(lane, true, SUITE_A);
    lose_lane(lane);
    lock();
    ofp_peer_connecting(lane);
    ofp_peer_up(lane);
    unlock();
    holds(peer, false, NULL);
}

static void test_of_two_lanes_the_weaker_counts(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    send_to(peer, 1);
    connect_lane_with(inner_of(peer, 0), true, SUITE_A);
    connect_lane_with(inner_of(peer, 1), true, SUITE_B);
    holds(peer, true, "TLS_AES_128_GCM_SHA256");
    /* The loss of either is that of the peer. */
    lose_lane(inner_of(peer, 1));
    send_to(peer, 2);
    connect_lane_with(inner_of(peer, 0), true, SUITE_A);
    holds(peer, true, "TLS_AES_128_GCM_SHA256");
    connect_lane_with(inner_of(peer, 1), false, 0);
    holds(peer, false, NULL);
}

static void test_a_peer_that_does_not_exist_is_refused(void **state)
{
    struct ofp_security security;

    (void)state;
    assert_int_equal(ofp_peer_security(fixture.endpoint, 77, &security), -OFP_EADDRNOTAVAIL);
    assert_int_equal(security.proven, 0);
}

#define ASKED(test) cmocka_unit_test_setup_teardown(test, reset, unset_key)
#define OPENED(test) cmocka_unit_test_setup_teardown(test, open_endpoint, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ASKED(test_the_warning_names_the_provider_and_the_key),
        ASKED(test_the_proof_of_a_set_is_the_weakest_of_its_parts),
        ASKED(test_a_named_provider_that_proves_no_key_is_refused),
        ASKED(test_an_unnamed_provider_that_proves_no_key_is_left_out_with_one_warning),
        ASKED(test_a_device_whose_peers_prove_the_key_is_kept),
        ASKED(test_a_set_from_before_the_key_is_refused),
        OPENED(test_the_lane_in_use_is_reported_while_it_is_up),
        OPENED(test_an_attempt_inherits_nothing),
        OPENED(test_of_two_lanes_the_weaker_counts),
        OPENED(test_a_peer_that_does_not_exist_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
