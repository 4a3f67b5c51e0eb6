/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that called and that nobody inserted: which are freed, and what keeps one. `a` never inserts anybody. */
#include "fake_fixture.h"

#include "base/address_vector.h"
#include "object/vector.h"
#include "peer/peer_state.h"
#include "peer/uninserted.h"
#include "progress/progress.h"

/* Idle peers beyond the bound are freed in batches. */
#define MOST (OFPI_UNINSERTED_LIMIT + 64)

static struct ofp_domain *caller_domain;
static struct ofp_cq *caller_queue;
static struct ofp_av *caller_vector;
static uint32_t server; /* `a` in caller_vector */

static struct ofpi_endpoint *core_of(const struct side *side) { return (struct ofpi_endpoint *)side->endpoint; }

static void open_a(bool auto_insert)
{
    struct ofp_av_attr av_attr = {.auto_insert = auto_insert};
    struct ofp_endpoint_attr attr = {0};
    char text[OFP_TEXT_MAX];

    side_open(&a, false, OFP_PROGRESS_MANUAL, 4096);
    if (auto_insert)
        return;
    assert_int_equal(ofp_endpoint_close(a.endpoint, 0), 0);
    assert_int_equal(ofp_av_close(a.av), 0);
    assert_int_equal(ofp_av_open(a.domain, &av_attr, &a.av), 0);
    attr.tx_cq = attr.rx_cq = a.cq;
    attr.av = a.av;
    assert_int_equal(ofp_endpoint_open(a.domain, &attr, &a.endpoint, text, sizeof(text)), 0);
}

static void open_callers(void)
{
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_av_attr av_attr = {0};
    struct ofp_info info = fake_info(false);
    char text[OFP_TEXT_MAX], address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    assert_int_equal(ofp_domain_open(fake_provider(), &info, &domain_attr, &caller_domain, text, sizeof(text)), 0);
    assert_int_equal(ofp_cq_open(caller_domain, &cq_attr, &caller_queue), 0);
    assert_int_equal(ofp_av_open(caller_domain, &av_attr, &caller_vector), 0);
    assert_int_equal(ofp_endpoint_address(a.endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(caller_vector, address, length, &server), 0);
}

static int open_sides(void **state)
{
    (void)state;
    open_a(true);
    open_callers();
    return 0;
}

static int open_without_auto_insert(void **state)
{
    (void)state;
    open_a(false);
    open_callers();
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    side_close(&a);
    assert_int_equal(ofp_av_close(caller_vector), 0);
    assert_int_equal(ofp_cq_close(caller_queue), 0);
    assert_int_equal(ofp_domain_close(caller_domain), 0);
    return 0;
}

static void progress(void)
{
    for (int i = 0; i < 8; i++) {
        ofp_domain_progress(caller_domain);
        ofp_domain_progress(a.domain);
    }
}

static struct ofp_endpoint *open_caller(void)
{
    struct ofp_endpoint_attr attr = {.tx_cq = caller_queue, .rx_cq = caller_queue, .av = caller_vector};
    struct ofp_endpoint *caller;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_endpoint_open(caller_domain, &attr, &caller, text, sizeof(text)), 0);
    return caller;
}

static void send_letter(struct ofp_endpoint *caller, uint64_t tag)
{
    struct ofp_operation op = tagged(OFP_TSEND, server, tag, "x", 1, 0);
    struct ofp_completion row;

    assert_int_equal(ofp_post(caller, &op, 1), 1);
    progress();
    assert_int_equal(ofp_cq_read(caller_queue, &row, 1), 1);
    assert_int_equal(row.error, 0);
}

/* What `a` receives of any source under this tag; UINT32_MAX: nothing. */
static uint32_t receive_source(uint64_t tag)
{
    static char letter;
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, tag, &letter, 1, 0);
    struct ofp_completion row;

    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    progress();
    if (ofp_cq_read(a.cq, &row, 1) != 1)
        return UINT32_MAX;
    assert_int_equal(row.error, 0);
    return row.source;
}

/* A caller sends something, which is received if `received`, and leaves. Returns its index at `a`. */
static uint32_t come_and_go(bool received)
{
    struct ofp_endpoint *caller = open_caller();
    uint32_t source = UINT32_MAX;

    send_letter(caller, 1);
    if (received)
        source = receive_source(1);
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
    progress();
    return source;
}

static void let_many_come_and_go(uint32_t count, bool received)
{
    for (uint32_t i = 0; i < count; i++)
        come_and_go(received);
}

static bool is_known(uint32_t index)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    int result = ofp_av_lookup(a.av, index, address, &length);

    assert_true(result == 0 || result == -OFP_EADDRNOTAVAIL);
    return result == 0;
}

static int post_to(uint32_t index)
{
    struct ofp_operation op = tagged(OFP_TSEND, index, 1, "x", 1, 7);

    return ofp_post(a.endpoint, &op, 1);
}

/* ----------------------------------------------------------------------------------------------------------- the bound */

static void test_those_that_left_first_are_forgotten(void **state)
{
    uint32_t first = come_and_go(true), last;

    (void)state;
    assert_true(is_known(first));
    let_many_come_and_go(MOST, true);
    assert_false(is_known(first));
    assert_true(ofp_av_count(a.av) <= MOST);
    assert_true(core_of(&a)->idle_uninserted_count <= MOST);
    last = come_and_go(true);
    let_many_come_and_go(100, true);
    assert_true(is_known(last));
}

/* The index of a freed peer names nobody: neither an operation nor a receive reaches another peer by it. */
static void test_the_index_of_a_freed_one_names_nobody(void **state)
{
    static char letter;
    uint32_t first = come_and_go(true);
    struct ofp_operation op = tagged(OFP_TRECV, first, 1, &letter, 1, 0);

    (void)state;
    let_many_come_and_go(3 * MOST, true);
    assert_false(is_known(first));
    assert_int_equal(post_to(first), -OFP_EADDRNOTAVAIL);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -OFP_EADDRNOTAVAIL);
    assert_int_equal(ofp_peer_incarnation(a.endpoint, first), -OFP_EADDRNOTAVAIL);
}

/* A caller that comes again after it was forgotten is a new peer. */
static void test_a_forgotten_one_comes_again(void **state)
{
    struct ofp_endpoint *caller = open_caller();
    uint32_t before, again;

    (void)state;
    send_letter(caller, 2);
    before = receive_source(2);
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)a.domain), 0);
    ofpi_peer_lost(&ofpi_peer_find_at(core_of(&a), before)->base, ECONNRESET, false, "the test says so");
    ofpi_domain_leave((struct ofpi_domain *)a.domain);
    let_many_come_and_go(MOST, true);
    assert_false(is_known(before));
    send_letter(caller, 2);
    again = receive_source(2);
    assert_int_not_equal(again, before);
    assert_true(is_known(again));
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
}

static void test_without_auto_insert(void **state)
{
    (void)state;
    let_many_come_and_go(2 * MOST, true);
    assert_int_equal(ofp_av_count(a.av), 0);
    assert_true(core_of(&a)->idle_uninserted_count <= MOST);
    /* The places are a power of two. */
    assert_true(core_of(&a)->unknown_sender_count <= 2 * OFPI_UNINSERTED_LIMIT);
    assert_true(ofpi_av_table_count(core_of(&a)->unknown_sender_addresses) <= MOST);
}

/* A message that waits does not keep a sender that has proved nothing; it is received nevertheless. */
static void test_a_waiting_message_outlives_its_sender(void **state)
{
    struct ofp_endpoint *caller = open_caller();
    uint32_t source;

    (void)state;
    send_letter(caller, 3);
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
    progress();
    let_many_come_and_go(MOST, true);
    assert_true(core_of(&a)->idle_uninserted_count <= MOST);
    source = receive_source(3);
    assert_int_not_equal(source, UINT32_MAX);
    assert_false(is_known(source));
}

/* ------------------------------------------------------------------------------------------------------ what keeps one */

static void test_one_that_is_up_stays(void **state)
{
    struct ofp_endpoint *caller = open_caller();
    uint32_t source;

    (void)state;
    send_letter(caller, 2);
    source = receive_source(2);
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(source));
    assert_int_equal(post_to(source), 1);
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
}

static void test_an_inserted_one_stays(void **state)
{
    uint32_t first = come_and_go(true), same;
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    (void)state;
    assert_int_equal(ofp_av_lookup(a.av, first, address, &length), 0);
    assert_int_equal(ofp_av_insert(a.av, address, length, &same), 0);
    assert_int_equal(same, first);
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(first));
}

static void test_a_receive_that_names_it_keeps_it(void **state)
{
    struct ofp_endpoint *caller = open_caller();
    static char letter;
    struct ofp_operation op;
    struct ofp_completion row;
    uint32_t source;

    (void)state;
    send_letter(caller, 2);
    source = receive_source(2);
    op = tagged(OFP_TRECV, source, 5, &letter, 1, 9);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    /* Lost, but not gone: the receive stays. */
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)a.domain), 0);
    ofpi_peer_lost(&ofpi_peer_find_at(core_of(&a), source)->base, ECONNRESET, false, "the test says so");
    ofpi_domain_leave((struct ofpi_domain *)a.domain);
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(source));
    assert_int_equal(ofp_cancel(a.endpoint, 9), 0);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
    assert_int_equal(row.error, ECANCELED);
    let_many_come_and_go(2 * MOST, true);
    assert_false(is_known(source));
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
}

/* A peer that has proved what the provider asks for is kept by its messages, so that a receive can name it. */
static void test_a_message_keeps_a_proven_one(void **state)
{
    struct ofp_endpoint *caller = open_caller();
    struct ofpi_peer *peer;
    uint32_t source;

    (void)state;
    send_letter(caller, 2);
    source = receive_source(2);
    peer = ofpi_peer_find_at(core_of(&a), source);
    peer->base.proven = true;
    send_letter(caller, 3);
    send_letter(caller, 3);
    assert_int_equal(peer->unexpected, 2);
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
    progress();
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(source));
    assert_int_equal(receive_source(3), source);
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(source));
    assert_int_equal(receive_source(3), source);
    assert_int_equal(peer->unexpected, 0);
    let_many_come_and_go(2 * MOST, true);
    assert_false(is_known(source));
}

/* Where many are needed, the others are freed nevertheless, at a cost that does not grow with those. */
static void test_needed_ones_do_not_hide_the_others(void **state)
{
    static char letter;

    (void)state;
    for (uint32_t i = 0; i < MOST; i++) {
        struct ofp_endpoint *caller = open_caller();
        uint32_t source;

        send_letter(caller, 2);
        source = receive_source(2);
        ofpi_peer_find_at(core_of(&a), source)->base.proven = true;
        send_letter(caller, 4);
        assert_int_equal(ofp_endpoint_close(caller, 0), 0);
        progress();
    }
    let_many_come_and_go(3 * MOST, true);
    assert_true(ofp_av_count(a.av) >= MOST);
    assert_true(ofp_av_count(a.av) <= 3 * MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, 4, &letter, 1, 0);
        struct ofp_completion row;

        assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
        assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
        assert_true(is_known(row.source));
    }
    let_many_come_and_go(2 * MOST, true);
    assert_true(ofp_av_count(a.av) <= MOST);
}

/* Two endpoints share a vector: an entry stays as long as either needs it. */
static void test_another_endpoint_of_the_vector_keeps_it(void **state)
{
    struct ofp_endpoint_attr attr = {.tx_cq = a.cq, .rx_cq = a.cq, .av = a.av};
    struct ofp_endpoint *second;
    struct ofp_endpoint *caller = open_caller();
    char text[OFP_TEXT_MAX];
    uint32_t source;

    (void)state;
    assert_int_equal(ofp_endpoint_open(a.domain, &attr, &second, text, sizeof(text)), 0);
    send_letter(caller, 2);
    source = receive_source(2);
    {
        struct ofp_operation op = tagged(OFP_TSEND, source, 6, "y", 1, 0);
        struct ofp_completion row;

        assert_int_equal(ofp_post(second, &op, 1), 1);
        progress();
        assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
    }
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)a.domain), 0);
    ofpi_peer_lost(&ofpi_peer_find_at(core_of(&a), source)->base, ECONNRESET, false, "the test says so");
    ofpi_domain_leave((struct ofpi_domain *)a.domain);
    let_many_come_and_go(2 * MOST, true);
    assert_true(is_known(source));
    assert_int_equal(ofp_endpoint_close(caller, 0), 0);
    progress();
    let_many_come_and_go(2 * MOST, true);
    assert_false(is_known(source));
    assert_null(ofpi_peer_find_at((struct ofpi_endpoint *)second, source));
    assert_int_equal(ofp_endpoint_close(second, 0), 0);
}

/* ----------------------------------------------------------------------------------------------------------- removed */

static void test_removed_ones_are_freed_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct ofp_endpoint *caller = open_caller();
        static char letter;
        struct ofp_operation op;
        struct ofp_completion row;
        uint32_t source;

        send_letter(caller, 2);
        source = receive_source(2);
        send_letter(caller, 3);
        op = tagged(OFP_TRECV, source, 5, &letter, 1, 9);
        assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
        assert_int_equal(ofp_av_remove(a.av, source), 0);
        assert_true(ofp_list_empty(&core_of(&a)->removed));
        assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
        assert_int_equal(row.error, ECANCELED);
        /* The message that it sent before is received yet. */
        assert_int_equal(receive_source(3), source);
        assert_int_equal(ofp_endpoint_close(caller, 0), 0);
        progress();
    }
    assert_int_equal(core_of(&a)->idle_uninserted_count, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_those_that_left_first_are_forgotten, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_the_index_of_a_freed_one_names_nobody, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_a_forgotten_one_comes_again, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_without_auto_insert, open_without_auto_insert, close_sides),
        cmocka_unit_test_setup_teardown(test_a_waiting_message_outlives_its_sender, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_one_that_is_up_stays, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_an_inserted_one_stays, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_a_receive_that_names_it_keeps_it, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_a_message_keeps_a_proven_one, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_needed_ones_do_not_hide_the_others, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_another_endpoint_of_the_vector_keeps_it, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_removed_ones_are_freed_at_once, open_sides, close_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
