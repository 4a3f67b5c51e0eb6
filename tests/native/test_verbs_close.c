/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a reliable datagram endpoint of verbs, on a device that is played here: its completion queue has what the test puts
 * there, or another failed receive for each that is taken, as with peers that go on sending.
 */
#include "verbs_fixture.h"

#include "packet/packet.h"

/* Receives that the device has, oldest first: a ring. */
static uint64_t posted[QUEUE];
static uint64_t head, tail;
static uint64_t flushed;      /* of them, those that have failed: completions that were not polled */
static uint64_t polled;       /* completions that were polled */
static uint64_t acknowledged; /* of the send queue, so many work requests, when it is looked at next; 0: none */
static bool floods;           /* every receive fails as soon as the device has it */

/* ------------------------------------------------------------------------------------------------------- the device */

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
    int count = 0;

    (void)cq;
    if (floods)
        flushed = head - tail;
    while (count < most && flushed) {
        completions[count++] = (struct ibv_wc){.wr_id = posted[tail++ % QUEUE], .status = IBV_WC_WR_FLUSH_ERR};
        flushed--;
    }
    /* Numbers of sends are odd. */
    if (acknowledged && count < most)
        completions[count++] = (struct ibv_wc){.wr_id = 2 * (acknowledged - 1) + 1};
    acknowledged = 0;
    polled += (uint64_t)count;
    assert_true(polled <= 4 * cq_size);
    return count;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    (void)srq;
    (void)bad;
    assert_true(head - tail < QUEUE);
    posted[head++ % QUEUE] = requests->wr_id;
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- the tests */

static void rdm_open(struct side *side)
{
    struct ofp_info info = played_info(OFP_EP_RDM, OFP_CAP_MSG | OFP_CAP_TAGGED);

    head = tail = flushed = polled = 0;
    floods = false;
    context.ops = (struct ibv_context_ops){.poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    fake_provider();
    side_open_info(side, &info, OFP_PROGRESS_MANUAL, 0);
    polled = 0;
}

static void rest_close(struct side *side)
{
    assert_int_equal(ofp_av_close(side->av), 0);
    assert_int_equal(ofp_cq_close(side->cq), 0);
    assert_int_equal(ofp_domain_close(side->domain), 0);
}

static void test_a_queue_that_never_empties(void **state)
{
    struct side side;

    (void)state;
    rdm_open(&side);
    floods = true;
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_true(polled >= cq_size);
    rest_close(&side);
}

static void test_what_was_there_is_taken_without_any_time(void **state)
{
    struct side side;
    uint64_t receives;

    (void)state;
    rdm_open(&side);
    receives = head - tail;
    assert_true(receives > 64);
    flushed = receives;
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_int_equal(flushed, 0);
    assert_int_equal(polled, receives);
    rest_close(&side);
}

/* ------------------------------------------------------------------------------------- packets that have not arrived */

static bool is_up;

static void note_accepted(struct ofpi_path *path, const uint8_t *hello, size_t length)
{
    (void)path;
    (void)hello;
    (void)length;
    is_up = true;
}

static void ignore_sent(struct ofpi_path *path, struct ofpi_packet *packet)
{
    (void)path;
    (void)packet;
}

static void ignore_moved(struct ofpi_path *path, void *cookie, int error, int provider_error)
{
    (void)path;
    (void)cookie;
    (void)error;
    (void)provider_error;
}

static void ignore_closed(struct ofpi_path *path) { (void)path; }

/* In place of native/rdm. */
static const struct ofpi_channel_user test_user = {
    .accepted = note_accepted, .sent = ignore_sent, .moved = ignore_moved, .closed = ignore_closed};

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *requests, struct ibv_send_wr **bad)
{
    (void)qp;
    (void)requests;
    (void)bad;
    return 0;
}

static struct ofpi_path *path_open(struct side *side, struct ofp_peer *peer)
{
    struct verbs_rdm *rdm = ofpi_rdm_private_of(side->endpoint);
    struct ofpi_channel *channel = rdm->channel;
    struct ofpi_path *path = calloc(1, sizeof(*path) + channel->ops->path_size);
    uint8_t hello[8] = {0};
    char text[OFP_TEXT_MAX];

    context.ops.post_send = post_send;
    channel->user = &test_user;
    peer->endpoint = side->endpoint;
    *path = (struct ofpi_path){.channel = channel, .peer = peer, .private = path + 1};
    is_up = false;
    assert_int_equal(channel->ops->connect(path, hello, sizeof(hello), text, sizeof(text)), 0);
    while (!is_up)
        ofp_domain_progress(side->domain);
    return path;
}

static void test_packets_without_acknowledgement(void **state)
{
    union tcp_address to = {.v4 = {.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(0xc0000202)}};
    struct ofp_peer peer = {.address = (void *)&to, .address_length = tcp_address_get_length(&to)};
    struct ofpi_memory memory = {.base = &to, .length = 8};
    uint8_t bytes[1024] = {0};
    struct ofpi_packet packets[4];
    const struct ofpi_channel_ops *ops;
    struct ofpi_path *path;
    struct side side;

    (void)state;
    rdm_open(&side);
    path = path_open(&side, &peer);
    ops = path->channel->ops;
    for (uint32_t i = 0; i < 4; i++) {
        packets[i] = (struct ofpi_packet){.bytes = bytes, .length = i < 2 ? 8 : sizeof(bytes), .completed = i % 2};
        assert_int_equal(ops->send(path, &packets[i], false), i < 2 ? OFP_POST_DONE : OFP_POST_PENDING);
    }
    assert_int_equal(ops->put(path, &memory, 0, 0, 0, 8, &memory), 0);
    assert_int_equal(ops->unsent(path), 2);
    acknowledged = 3;
    ofp_domain_progress(side.domain);
    assert_int_equal(ops->unsent(path), 1);
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    free(path);
    rest_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_that_never_empties),
        cmocka_unit_test(test_what_was_there_is_taken_without_any_time),
        cmocka_unit_test(test_packets_without_acknowledgement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
