/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer of a release that speaks no version of this one, in both roles. */
#include "rdm_attacker.h"

/* A hello of a release that speaks no version of this one. */
static void write_later_hello(uint8_t bytes[OFPI_RDM_HELLO_SIZE])
{
    struct ofpi_rdm_hello hello = greeting();

    hello.oldest = hello.version = OFPI_RDM_VERSION + 1;
    ofpi_rdm_hello_encode(&hello, bytes);
}

static void check_incompatible(struct attacker *attacker)
{
    char text[OFP_TEXT_MAX];
    struct ofp_completion row;

    progress(attacker);
    assert_int_equal(ofp_cq_read(attacker->victim.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, EPROTONOSUPPORT);
    ofp_reason(row.provider_error, text, sizeof(text));
    assert_string_equal(text,
                        "the peer speaks version 2 of the rdm protocol, and this side version 1; update ofipy on this "
                        "side");
}

/* `length`: of the hello, of which 6 bytes are the same in every version. */
static void check_call_of_later_release(size_t length)
{
    uint64_t in = 0;
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct attacker attacker;
    struct ofp_operation receive;

    begin(&attacker, RDMFAKE_PACKETS);
    receive = tagged(OFP_TRECV, attacker.peer, 1, &in, sizeof(in), 5);
    assert_int_equal(ofp_post(attacker.victim.endpoint, &receive, 1), 1);
    write_later_hello(bytes);
    ask(&attacker, bytes, length);
    assert_true(hear(&attacker, RDMFAKE_REFUSE));
    assert_int_equal(attacker.length, OFPI_RDM_HELLO_SIZE);
    expect_warning("the peer speaks version 2");
    check_incompatible(&attacker);
    check_good_peer(&attacker);
    end(&attacker);
}

static void test_a_call_of_a_later_release(void **state)
{
    (void)state;
    check_call_of_later_release(OFPI_RDM_HELLO_SIZE);
    check_call_of_later_release(6);
}

/* The victim calls, and is refused, or accepted by a release that does not check. */
static void check_answer_of_later_release(enum rdmfake_event_kind kind)
{
    uint8_t bytes[OFPI_RDM_HELLO_SIZE], out = 1;
    struct ofp_operation send;
    struct rdmfake_event *event;
    struct attacker attacker;

    begin(&attacker, RDMFAKE_PACKETS);
    send = tagged(OFP_TSEND, attacker.peer, 1, &out, 1, 5);
    assert_int_equal(ofp_post(attacker.victim.endpoint, &send, 1), 1);
    while (!(event = rdmfake_port_take(attacker.port)))
        ofp_domain_progress(attacker.victim.domain);
    assert_int_equal(event->kind, RDMFAKE_ASK);
    write_later_hello(bytes);
    rdmfake_line_put(event->line, 0, kind, false, bytes, sizeof(bytes));
    rdmfake_line_close(rdmfake_line_hold(event->line), 1);
    rdmfake_event_free(event);
    check_incompatible(&attacker);
    end(&attacker);
}

static void test_an_answer_of_a_later_release(void **state)
{
    (void)state;
    check_answer_of_later_release(RDMFAKE_REFUSE);
    check_answer_of_later_release(RDMFAKE_ACCEPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_of_a_later_release),
        cmocka_unit_test(test_an_answer_of_a_later_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
