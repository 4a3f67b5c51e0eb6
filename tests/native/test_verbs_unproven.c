/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over verbs that accepts the connection of an endpoint with a key: only a proof of the key in its answer makes the
 * endpoint's queue pair ready to receive. The connection manager is played here.
 */
#include "verbs_key_fixture.h"

static unsigned modified, established; /* calls that make the queue pair, or the connection, ready */
static unsigned rights[8];             /* that a peer got with each state */
static struct ibv_wc sent;             /* the work request at the device that reports its end; its wr_id 0: none */

static int count_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    if (mask & IBV_QP_ACCESS_FLAGS)
        rights[attr->qp_state] = attr->qp_access_flags;
    modified++;
    return 0;
}

static int count_establish(struct rdma_cm_id *id)
{
    (void)id;
    established++;
    return 0;
}

static int post_send_once(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void)bad;
    for (; request; request = request->next)
        if (request->send_flags & IBV_SEND_SIGNALED)
            sent = (struct ibv_wc){.wr_id = request->wr_id, .status = IBV_WC_SUCCESS, .qp_num = qp->qp_num};
    return 0;
}

static int poll_sent(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
    (void)cq;
    if (!sent.wr_id || most < 1)
        return 0;
    completions[0] = sent;
    sent.wr_id = 0;
    return 1;
}

static int open_counting_side(void **state)
{
    open_side(state);
    context.ops.poll_cq = poll_sent;
    context.ops.post_send = post_send_once;
    sent.wr_id = 0;
    verbs_calls.modify_qp = count_modify_qp;
    verbs_calls.establish = count_establish;
    modified = established = 0;
    memset(rights, 0, sizeof(rights));
    return 0;
}

static void accept_said(const uint8_t *data, size_t length)
{
    tell((struct rdma_cm_event){.id = said.id, .event = RDMA_CM_EVENT_CONNECT_RESPONSE, .param.conn.qp_num = PAIR},
         data, length);
}

/* The endpoint rejects the answer with this byte, its send fails for this reason, and its queue pair stays in RESET. */
static void check_rejection(enum verbs_rejection rejection, enum verbs_rejection reason)
{
    char text[OFP_TEXT_MAX];

    assert_int_equal(said.length, 1);
    assert_int_equal(said.bytes[0], rejection);
    assert_int_equal(established, 0);
    read_end(EACCES, text);
    assert_string_equal(text, verbs_key_find_text(reason));
    /* The end of the path puts the queue pair into the error state, once, and nothing before that. */
    assert_in_range(modified, 0, 1);
}

/* An answer of the acceptor with a proof of `key`, made for this role and number of a queue pair. */
static size_t encode_answer(const struct verbs_facts *facts, const uint8_t *key, enum verbs_role role, uint32_t pair,
                            uint8_t bytes[VERBS_PROVEN_ANSWER_MAX])
{
    uint8_t proof[OFPI_PROOF_SIZE];

    verbs_proof_compute(key, facts, role, pair, proof);
    return verbs_answer_encode(bytes, facts->acceptor_hello, OFPI_RDM_HELLO_SIZE, proof);
}

static void answer_with_proof(const uint8_t *key, enum verbs_role role, uint32_t pair)
{
    uint8_t bytes[VERBS_PROVEN_ANSWER_MAX];
    struct verbs_facts facts;

    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    accept_said(bytes, encode_answer(&facts, key, role, pair, bytes));
}

/* The tests below differ from this one by the proof alone. `state`: whether no peer of this process has proved the key before. */
static void test_a_proof(void **state)
{
    struct ofp_completion row;

    forget_warnings();
    answer_with_proof(domain_key(OWN), VERBS_ACCEPTOR, PAIR);
    assert_int_equal(said.length, 0);
    assert_int_equal(established, 1);
    assert_true(modified > 1);
    /* The peer gets rights to memory with RTR, and none before. */
    assert_int_equal(rights[IBV_QPS_INIT], IBV_ACCESS_LOCAL_WRITE);
    assert_true(rights[IBV_QPS_RTR] & IBV_ACCESS_REMOTE_READ && rights[IBV_QPS_RTR] & IBV_ACCESS_REMOTE_WRITE);
    if (*(const bool *)*state)
        expect_warning("peers prove the key when they connect, but RDMA packets are neither encrypted nor signed");
    assert_false(ofp_log_waiting());
    ofp_domain_progress(side.domain);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, CONTEXT);
    assert_int_equal(row.error, 0);
}

/* A release without proofs, or a program without the key that took the address, accepts the first request at once. */
static void test_an_answer_without_a_challenge(void **state)
{
    uint8_t hello[OFPI_RDM_HELLO_SIZE];

    (void)state;
    post_send();
    hear_request();
    write_hello(OFPI_RDM_VERSION, hello);
    accept_said(hello, sizeof(hello));
    check_rejection(VERBS_REJECT_KEY_HERE, VERBS_REJECT_KEY_THERE);
}

static void test_a_hello_alone(void **state)
{
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    accept_said(facts.acceptor_hello, OFPI_RDM_HELLO_SIZE);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

static void test_no_data(void **state)
{
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    accept_said(NULL, 0);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

static void test_a_part_of_a_proof(void **state)
{
    uint8_t bytes[VERBS_PROVEN_ANSWER_MAX];
    struct verbs_facts facts;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    accept_said(bytes, encode_answer(&facts, domain_key(OWN), VERBS_ACCEPTOR, PAIR, bytes) - 1);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

static void test_a_proof_of_another_key(void **state)
{
    static const uint8_t other[OFPI_SHA256_SIZE] = "another key";

    (void)state;
    answer_with_proof(other, VERBS_ACCEPTOR, PAIR);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

/* The peer sends back what the endpoint has proved: it needs no key for that. */
static void test_our_own_proof(void **state)
{
    (void)state;
    answer_with_proof(domain_key(OWN), VERBS_CALLER, said.pair);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

static void test_a_proof_for_another_queue_pair(void **state)
{
    (void)state;
    answer_with_proof(domain_key(OWN), VERBS_ACCEPTOR, PAIR + 1);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

/* The proof of an earlier connection, whose nonces were others. */
static void test_a_proof_from_before(void **state)
{
    uint8_t bytes[VERBS_PROVEN_ANSWER_MAX];
    struct verbs_facts facts;
    size_t length;

    (void)state;
    post_send();
    challenge_caller(&facts, OWN, OFPI_RDM_VERSION);
    facts.caller_nonce[0] ^= 1;
    length = encode_answer(&facts, domain_key(OWN), VERBS_ACCEPTOR, PAIR, bytes);
    accept_said(bytes, length);
    check_rejection(VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
}

int main(void)
{
    static bool first = true, later = false;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(test_a_proof, open_counting_side, close_side, &first),
        cmocka_unit_test_prestate_setup_teardown(test_a_proof, open_counting_side, close_side, &later),
        cmocka_unit_test_setup_teardown(test_an_answer_without_a_challenge, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_hello_alone, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_no_data, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_part_of_a_proof, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_proof_of_another_key, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_our_own_proof, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_proof_for_another_queue_pair, open_counting_side, close_side),
        cmocka_unit_test_setup_teardown(test_a_proof_from_before, open_counting_side, close_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
