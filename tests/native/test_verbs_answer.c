/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of verbs that ends while operations are at the device. Where the other side leaves, what the device says of them
 * decides how they end, whichever of its completion and the connection manager's event is seen first. Where this side closes, those
 * that are completed and that the device has no acknowledgement for are counted.
 */
#include "verbs_fixture.h"

#include "connection/channel.h"
#include "ofipy/connect.h"

#define SECOND UINT64_C(1000000000)
enum { CONTEXT = 17, RING = 64 };

/* Completions that were not polled: a ring. */
static struct ibv_wc completions[RING];
static uint64_t head, tail;

static uint64_t sent;      /* work requests of the send queue */
static uint64_t receive;   /* the last receive that was posted; 0: none */
static bool data_for_ever; /* whatever receive is posted, a write with data takes it at once */
static uint64_t polled;    /* completions that were polled */
static struct ibv_qp *pair;
static struct rdma_cm_id *id;
static void (*after_poll)(void); /* called once, after the next poll */

/* ------------------------------------------------------------------------------------------------------- the device */

static void complete_work(uint64_t number, enum ibv_wc_status status)
{
    completions[head++ % RING] =
        (struct ibv_wc){.wr_id = number, .status = status, .opcode = IBV_WC_RECV_RDMA_WITH_IMM};
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *taken)
{
    void (*next)(void) = after_poll;
    int count = 0;

    (void)cq;
    if (data_for_ever && head == tail)
        complete_work(receive, IBV_WC_SUCCESS);
    while (count < most && head != tail)
        taken[count++] = completions[tail++ % RING];
    polled += (uint64_t)count;
    assert_true(polled <= 4 * cq_size);
    after_poll = NULL;
    if (next)
        next();
    return count;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *requests, struct ibv_send_wr **bad)
{
    (void)bad;
    pair = qp;
    for (; requests; requests = requests->next)
        sent++;
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    (void)qp;
    (void)bad;
    receive = requests->wr_id;
    return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------- the connection */

static struct node {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_endpoint *endpoint;
} node;

static int remember_id(struct rdma_cm_id *asked, struct rdma_conn_param *param)
{
    id = asked;
    return connect_there(asked, param);
}

static void connect_node(void)
{
    union tcp_address to = {.v4 = {.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(0xc0000202)}};
    char said[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;
    size_t length;

    assert_int_equal(ofp_connect(node.endpoint, &to, tcp_address_get_length(&to), NULL, 0), 0);
    do {
        ofp_domain_progress(node.domain);
        length = sizeof(said);
        assert_true(ofpi_clock_read() < deadline);
    } while (ofp_connection_status(node.endpoint, said, &length, text, sizeof(text)) == -EINPROGRESS);
}

static int node_open(void **state)
{
    struct ofp_info info = played_info(OFP_EP_MSG, OFP_CAP_MSG | OFP_CAP_RMA | OFP_CAP_DEVICE_ATOMIC | OFP_CAP_ATOMIC);
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {0};
    struct ofp_endpoint_attr attr = {0};
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    head = tail = sent = receive = polled = 0;
    data_for_ever = false;
    context.ops = (struct ibv_context_ops){
        .poll_cq = poll_cq, .post_send = post_send, .post_recv = post_recv, .req_notify_cq = req_notify_cq};
    info.offloads_matching = 1;
    info.max_rma_size = info.max_atomic_size = 1 << 20;
    info.remote_segment_limit = 2;
    assert_int_equal(ofp_domain_open(fake_provider(), &info, &domain_attr, &node.domain, text, sizeof(text)), 0);
    verbs_calls.connect = remember_id;
    assert_int_equal(ofp_cq_open(node.domain, &cq_attr, &node.cq), 0);
    attr.tx_cq = attr.rx_cq = node.cq;
    assert_int_equal(ofp_endpoint_open(node.domain, &attr, &node.endpoint, text, sizeof(text)), 0);
    connect_node();
    polled = 0;
    return 0;
}

static int node_close(void **state)
{
    (void)state;
    data_for_ever = false;
    if (node.endpoint)
        assert_int_equal(ofp_endpoint_close(node.endpoint, 0), 0);
    assert_int_equal(ofp_cq_close(node.cq), 0);
    assert_int_equal(ofp_domain_close(node.domain), 0);
    return 0;
}

static const uint16_t kinds[] = {OFP_SEND, OFP_WRITE, OFP_READ, OFP_FETCH_ATOMIC};
static uint64_t local, result;

static void post_kind(uint16_t kind)
{
    struct ofp_operation op = tagged(kind, 0, 0, &local, sizeof(local), CONTEXT);

    op.remote_key = 5;
    op.flags = kind == OFP_READ ? 0 : OFP_DELIVERY_COMPLETE;
    if (kind == OFP_FETCH_ATOMIC) {
        op.flags |= OFP_DEVICE_ATOMIC;
        op.atomic_op = OFP_ATOMIC_SUM;
        op.datatype = OFP_UINT64;
        op.result_offset = (uint64_t)(uintptr_t)&result;
    }
    assert_int_equal(ofp_post(node.endpoint, &op, 1), 1);
    assert_int_equal(sent, 1);
}

static void leave_there(void) { cm_tell(id, RDMA_CM_EVENT_DISCONNECTED); }
/* The connection manager reports a rejection if it has not learned that the connection is established. */
static void reject_there(void) { cm_tell(id, RDMA_CM_EVENT_REJECTED); }
static void refuse_there(void) { complete_work(0, IBV_WC_REM_ACCESS_ERR); }

/* The device reports that the queue pair failed; only the completion has the reason. */
static void refuse_and_fail(void)
{
    refuse_there();
    atomic_store(&((struct verbs_qp_context *)pair->qp_context)->fatal, IBV_EVENT_QP_FATAL);
}

/* Progress until the event of the connection manager has been read. */
static void read_event(void)
{
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    while (cm_event.id) {
        ofp_domain_progress(node.domain);
        assert_true(ofpi_clock_read() < deadline);
    }
}

static void expect_end(int error)
{
    struct ofp_completion row = {0};
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    while (ofp_cq_read(node.cq, &row, 1) != 1) {
        ofp_domain_progress(node.domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(row.context, CONTEXT);
    assert_int_equal(row.error, error);
}

/* ----------------------------------------------------------------------------------------------------------- the tests */

static void for_each_kind(void (*test)(void))
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        post_kind(kinds[i]);
        test();
        expect_end(OFP_EREMOTE);
        node_close(NULL);
        node_open(NULL);
    }
}

static void completion_first(void)
{
    refuse_there();
    leave_there();
}

static void refuse_later(void)
{
    struct ofp_completion row;

    read_event();
    assert_int_equal(ofp_cq_read(node.cq, &row, 1), 0);
    refuse_there();
}

static void event_first(void)
{
    leave_there();
    refuse_later();
}

static void rejection_first(void)
{
    reject_there();
    refuse_later();
}

static void between_two_looks(void) { after_poll = refuse_and_fail; }

static void test_a_refusal_that_is_there_decides(void **state)
{
    (void)state;
    for_each_kind(completion_first);
}

static void test_a_refusal_that_comes_after_the_event_decides(void **state)
{
    (void)state;
    for_each_kind(event_first);
    for_each_kind(rejection_first);
}

static void test_a_refusal_decides_before_an_event_of_the_queue_pair(void **state)
{
    (void)state;
    for_each_kind(between_two_looks);
}

static void test_what_was_done_there_has_not_failed(void **state)
{
    (void)state;
    post_kind(OFP_WRITE);
    leave_there();
    read_event();
    complete_work(0, IBV_WC_SUCCESS);
    expect_end(0);
}

static void test_a_peer_that_never_answers_is_lost_all_the_same(void **state)
{
    uint64_t began = ofpi_clock_read();

    (void)state;
    post_kind(OFP_WRITE);
    leave_there();
    expect_end(ESHUTDOWN);
    assert_true(ofpi_clock_read() - began >= VERBS_ANSWER_NS);
}

static void test_nothing_is_waited_for_where_nothing_is_under_way(void **state)
{
    struct ofp_operation op = tagged(OFP_RECV, 0, 0, &local, sizeof(local), CONTEXT);
    char said[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(said);

    (void)state;
    assert_int_equal(ofp_post(node.endpoint, &op, 1), 1);
    leave_there();
    read_event();
    assert_int_equal(ofp_connection_status(node.endpoint, said, &length, text, sizeof(text)), -ESHUTDOWN);
    expect_end(ESHUTDOWN);
}

static void test_a_queue_that_never_empties(void **state)
{
    struct ofp_operation op = tagged(OFP_RECV, 0, 0, &local, sizeof(local), CONTEXT);
    char said[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(said);

    (void)state;
    assert_int_equal(ofp_post(node.endpoint, &op, 1), 1);
    data_for_ever = true;
    leave_there();
    read_event();
    assert_true(polled >= cq_size);
    assert_int_equal(ofp_connection_status(node.endpoint, said, &length, text, sizeof(text)), -ESHUTDOWN);
}

/* Two that are inline, one from a slot, and one of two work requests: all complete, and all of one work request that is no operation. */
static void post_completed(void)
{
    static char bytes[4096];
    struct ofp_remote_segment pieces[2] = {{0, 2048, 5}, {4096, 2048, 5}};
    struct ofp_operation op = tagged(OFP_SEND, 0, 0, bytes, 8, 0);
    struct ofp_completion row;

    for (int i = 0; i < 4; i++) {
        if (i == 2)
            op.length = sizeof(bytes);
        if (i == 3) {
            op.op = OFP_WRITE;
            op.remote_segments = (uint64_t)(uintptr_t)pieces;
            op.remote_segment_count = 2;
        }
        assert_int_equal(ofp_post(node.endpoint, &op, 1), 1);
        assert_int_equal(ofp_cq_read(node.cq, &row, 1), 1);
        assert_int_equal(row.error, 0);
    }
    assert_int_equal(sent, 5);
}

static void expect_unsent(uint64_t count)
{
    struct ofp_unsent unsent;

    assert_int_equal(ofp_endpoint_drain(node.endpoint), count != 0);
    assert_int_equal(ofp_endpoint_retire(node.endpoint, 0), 0);
    assert_int_equal(ofp_endpoint_unsent(node.endpoint, &unsent), 0);
    assert_int_equal(unsent.count, count);
    assert_int_equal(unsent.peers, count != 0);
    ofp_endpoint_free(node.endpoint);
    node.endpoint = NULL;
}

static void test_what_no_device_has_acknowledged_is_counted(void **state)
{
    (void)state;
    post_completed();
    expect_unsent(4);
}

static void test_what_is_acknowledged_is_not_counted(void **state)
{
    (void)state;
    post_completed();
    complete_work(1, IBV_WC_SUCCESS);
    ofp_domain_progress(node.domain);
    expect_unsent(2);
}

static void test_after_the_goodbye_nothing_is_counted(void **state)
{
    (void)state;
    post_completed();
    assert_int_equal(ofp_endpoint_drain(node.endpoint), 1);
    assert_int_equal(sent, 6);
    complete_work(5, IBV_WC_SUCCESS);
    ofp_domain_progress(node.domain);
    expect_unsent(0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_refusal_that_is_there_decides),
        TEST(test_a_refusal_that_comes_after_the_event_decides),
        TEST(test_a_refusal_decides_before_an_event_of_the_queue_pair),
        TEST(test_what_was_done_there_has_not_failed),
        TEST(test_a_peer_that_never_answers_is_lost_all_the_same),
        TEST(test_nothing_is_waited_for_where_nothing_is_under_way),
        TEST(test_a_queue_that_never_empties),
        TEST(test_what_no_device_has_acknowledged_is_counted),
        TEST(test_what_is_acknowledged_is_not_counted),
        TEST(test_after_the_goodbye_nothing_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
