/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for a connection over verbs that are repeated: the peer puts them off, its challenge was displaced, or its connection
 * manager knows the queue pair from before. The operation waits meanwhile. The connection manager is played here.
 */
#include "verbs_key_fixture.h"

enum { OTHER_REASON = 25 };

static void check_nothing_ended(void)
{
    struct ofp_completion row;

    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
}

/* The endpoint requests again from the beginning, without a proof. */
static void check_first_request(void)
{
    struct verbs_path_request request;

    hear_request();
    assert_true(verbs_request_decode(said.bytes, said.length, &request));
    assert_true(request.has_key && !request.has_proof);
    check_nothing_ended();
}

static void answer_by_manager(int status)
{
    struct rdma_cm_event event = reject_said();

    event.status = status;
    tell(event, NULL, 0);
}

static void test_a_stale_number(void **state)
{
    const struct verbs_rdm *rdm = ofpi_rdm_private_of(side.endpoint);

    (void)state;
    post_send();
    for (uint64_t times = 1; times <= 2; times++) {
        check_first_request();
        answer_by_manager(VERBS_REJECTED_STALE);
        assert_int_equal(rdm->stale, times);
    }
    check_first_request();
}

static void test_a_peer_that_puts_off(void **state)
{
    const uint8_t later = VERBS_REJECT_LATER;

    (void)state;
    post_send();
    check_first_request();
    tell(reject_said(), &later, 1);
    check_first_request();
}

/* The peer's kernel refuses in the name of a program that has not got the request. */
static void test_a_peer_without_a_word(void **state)
{
    (void)state;
    post_send();
    check_first_request();
    tell(reject_said(), NULL, 0);
    check_first_request();
}

/* Many callers displaced the challenge before the proof came: a new one is asked for, and the old proof is not sent again. */
static void test_a_displaced_challenge(void **state)
{
    const uint8_t later = VERBS_REJECT_LATER;
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    tell(reject_said(), &later, 1);
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    check_nothing_ended();
}

/* A second challenge in answer to a proof: an acceptor that started anew, or somebody who wants many proofs. */
static void test_a_challenge_in_answer_to_a_proof(void **state)
{
    uint8_t bytes[VERBS_CHALLENGE_DATA_MAX] = {VERBS_REJECT_CHALLENGE, VERBS_PROOF_VERSION};
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    tell(reject_said(), bytes, sizeof(bytes));
    check_first_request();
}

/* -------------------------------------------------------------------------------------------------------- resolution */

static struct rdma_cm_id *resolving; /* the id whose address is asked for */

static int resolve_and_wait(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout)
{
    (void)from;
    (void)to;
    (void)timeout;
    resolving = id;
    return 0;
}

/* The next attempt to resolve the address ends with this status. */
static void fail_resolution(int status)
{
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;
    struct rdma_cm_event event = {.event = RDMA_CM_EVENT_ADDR_ERROR, .status = status};

    while (!resolving) {
        ofp_domain_progress(side.domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    event.id = resolving;
    resolving = NULL;
    tell(event, NULL, 0);
}

static void test_an_address_at_which_nothing_answers(void **state)
{
    (void)state;
    verbs_calls.resolve_addr = resolve_and_wait;
    post_send();
    for (int attempt = 0; attempt < 3; attempt++) {
        fail_resolution(-ETIMEDOUT);
        check_nothing_ended();
    }
    /* The host is there after all. */
    verbs_calls.resolve_addr = resolve_addr;
    resolving = NULL;
    check_first_request();
}

static int open_hasty_side(void **state)
{
    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    open_side(state);
    unsetenv("OFIPY_CONNECT_TIMEOUT");
    return 0;
}

static void test_an_address_at_which_nothing_ever_answers(void **state)
{
    uint64_t began = ofpi_clock_read();
    struct ofp_completion row;

    (void)state;
    verbs_calls.resolve_addr = resolve_and_wait;
    post_send();
    while (ofp_cq_read(side.cq, &row, 1) == 0) {
        assert_true(ofpi_clock_read() < began + 30 * SECOND);
        if (resolving)
            fail_resolution(-ETIMEDOUT);
        ofp_domain_progress(side.domain);
    }
    assert_true(ofpi_clock_read() >= began + SECOND);
    assert_int_equal(row.error, ETIMEDOUT);
}

static void test_an_address_without_a_way(void **state)
{
    char text[OFP_TEXT_MAX];

    (void)state;
    verbs_calls.resolve_addr = resolve_and_wait;
    post_send();
    fail_resolution(-ENETUNREACH);
    read_end(ENETUNREACH, text);
    assert_string_equal(text, "no way to the address: Network is unreachable");
}

/* ------------------------------------------------------------------------------------------------------- final answers */

static void test_another_reason_of_the_manager(void **state)
{
    char text[OFP_TEXT_MAX];

    (void)state;
    post_send();
    check_first_request();
    answer_by_manager(OTHER_REASON);
    read_end(ECONNREFUSED, text);
    assert_string_equal(text, "the other side's connection manager refused, for its reason 25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_stale_number, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_peer_that_puts_off, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_peer_without_a_word, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_displaced_challenge, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_challenge_in_answer_to_a_proof, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_an_address_at_which_nothing_answers, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_an_address_at_which_nothing_ever_answers, open_hasty_side, close_side),
        cmocka_unit_test_setup_teardown(test_an_address_without_a_way, open_side, close_side),
        cmocka_unit_test_setup_teardown(test_another_reason_of_the_manager, open_side, close_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
