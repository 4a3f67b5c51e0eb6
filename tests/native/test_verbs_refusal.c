/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over verbs that has a key, and whose release speaks no version of rdm that this one does, in both roles: its
 * versions count if its key does. The connection manager is played here.
 */
#include "verbs_key_fixture.h"

enum { LATER = 9 };

static void check_end(int error)
{
    char text[OFP_TEXT_MAX];

    read_end(error, text);
    if (error == EPROTONOSUPPORT)
        assert_string_equal(text,
                            "the peer speaks version 9 of the rdm protocol, and this side version 1; update ofipy on "
                            "this side");
}

/* --------------------------------------------------------------------------------------------------------- we call it */

static void answer_with_version(struct verbs_facts *facts, int which, bool proves)
{
    uint8_t bytes[VERBS_VERSION_DATA_MAX] = {VERBS_REJECT_VERSION}, proof[OFPI_PROOF_SIZE];

    verbs_proof_compute(domain_key(which), facts, VERBS_ACCEPTOR, VERBS_NO_PAIR, proof);
    proof[0] ^= !proves;
    tell(reject_said(), bytes, 1 + verbs_answer_encode(bytes + 1, facts->acceptor_hello, OFPI_RDM_HELLO_SIZE, proof));
}

static void test_an_answer_of_a_later_release(void **state)
{
    bool proves = *(bool *)*state;
    struct verbs_facts facts;

    post_send();
    challenge_caller(&facts, OWN, LATER);
    answer_with_version(&facts, OWN, proves);
    check_end(proves ? EPROTONOSUPPORT : EACCES);
}

/* The peer has the accepted key alone: the endpoint calls again, and proves that one. */
static void test_an_answer_by_the_accepted_key(void **state)
{
    const uint8_t other_key = VERBS_REJECT_OTHER_KEY;
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, LATER);
    tell(reject_said(), &other_key, 1);
    challenge_caller(&facts, ACCEPTED, LATER);
    answer_with_version(&facts, ACCEPTED, true);
    check_end(EPROTONOSUPPORT);
}

/* A caller has proven one key: the answer by another one is none. */
static void test_an_answer_by_a_key_that_was_not_proven(void **state)
{
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, LATER);
    answer_with_version(&facts, ACCEPTED, true);
    check_end(EACCES);
}

static void test_a_peer_that_has_none_of_the_keys(void **state)
{
    const uint8_t other_key = VERBS_REJECT_OTHER_KEY;
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, LATER);
    tell(reject_said(), &other_key, 1);
    challenge_caller(&facts, ACCEPTED, LATER);
    tell(reject_said(), &other_key, 1);
    check_end(EACCES);
}

/* -------------------------------------------------------------------------------------------------------- it calls us */

static void check_call(int which, bool proves)
{
    struct verbs_facts facts;
    uint8_t proof[OFPI_PROOF_SIZE], room = 0;
    struct ofp_operation op = tagged(OFP_TRECV, peer, 1, &room, 1, CONTEXT);
    struct ofp_completion row;

    forget_warnings();
    assert_int_equal(ofp_post(side.endpoint, &op, 1), 1);
    call_with_proof(&facts, which, LATER, proves);
    if (!proves) {
        assert_int_equal(said.bytes[0], VERBS_REJECT_OTHER_KEY);
        /* Each side names the other. */
        expect_warning("refuses 192.0.2.2:7777: the peer has another key than this side");
        ofp_domain_progress(side.domain);
        assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
        return;
    }
    assert_int_equal(said.bytes[0], VERBS_REJECT_VERSION);
    assert_true(verbs_answer_decode(said.bytes + 1, said.length - 1u, &facts, proof));
    assert_int_equal(facts.acceptor_hello[4], OFPI_RDM_VERSION);
    assert_true(verbs_proof_is_valid(domain_key(which), &facts, VERBS_ACCEPTOR, VERBS_NO_PAIR, proof));
    check_end(EPROTONOSUPPORT);
}

static void test_a_call_of_a_later_release(void **state) { check_call(OWN, *(bool *)*state); }

static void test_a_call_with_the_accepted_key(void **state)
{
    (void)state;
    check_call(ACCEPTED, true);
}

/* The challenge has ended, or was never sent: the caller comes again, and the log says why. */
static void test_a_call_to_a_challenge_that_has_ended(void **state)
{
    const struct verbs_facts facts = {.challenge = {1}, .caller_nonce = {2}};
    uint8_t second[VERBS_PROOF_REQUEST_SIZE], proof[OFPI_PROOF_SIZE] = {3};
    char provider[32], text[OFP_TEXT_MAX] = "";
    int level = 0;

    (void)state;
    ofp_log_set_level(OFP_LOG_INFO);
    forget_warnings();
    call_side(second, verbs_second_request_encode(second, PORT, &facts, proof));
    assert_int_equal(said.bytes[0], VERBS_REJECT_LATER);
    assert_true(ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)));
    assert_int_equal(level, OFP_LOG_INFO);
    assert_non_null(strstr(text, "puts 192.0.2.2:7777 off: the challenge that it answers has ended; so far 1"));
    ofp_log_set_level(OFP_LOG_WARNING);
}

int main(void)
{
    static bool proves = true, lies = false;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(test_an_answer_of_a_later_release, open_side, close_side, &proves),
        cmocka_unit_test_prestate_setup_teardown(test_an_answer_of_a_later_release, open_side, close_side, &lies),
        cmocka_unit_test_prestate_setup_teardown(test_a_call_of_a_later_release, open_side, close_side, &proves),
        cmocka_unit_test_prestate_setup_teardown(test_a_call_of_a_later_release, open_side, close_side, &lies),
        cmocka_unit_test_setup_teardown(test_an_answer_by_the_accepted_key, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_an_answer_by_a_key_that_was_not_proven, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_peer_that_has_none_of_the_keys, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_call_with_the_accepted_key, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_call_to_a_challenge_that_has_ended, open_side, close_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
