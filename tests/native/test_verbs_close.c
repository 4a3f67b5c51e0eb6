/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a reliable datagram endpoint of verbs, on a device that is played here: its completion queue has what the test puts
 * there, or another failed receive for each that is taken, as with peers that go on sending.
 */
#include "core_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/place.h"

enum { QUEUE = 4096 };

struct verbs_calls verbs_calls;
pthread_mutex_t verbs_library_lock = PTHREAD_MUTEX_INITIALIZER;
__typeof__(ibv_reg_dmabuf_mr) *verbs_reg_dmabuf_mr;

/* Of no interest but as pointers. */
struct ibv_pd {
    char unused;
};

/* Receives that the device has, oldest first: a ring. */
static uint64_t posted[QUEUE];
static uint64_t head, tail;
static uint64_t flushed; /* of them, those that have failed: completions that nobody has taken */
static uint64_t polled;  /* completions that were taken */
static uint64_t cq_size;
static bool floods; /* every receive fails as soon as the device has it */

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

static struct ibv_device device;
static struct ibv_context context = {.device = &device, .ops = {.poll_cq = poll_cq, .post_srq_recv = post_srq_recv}};
static struct ibv_pd pd;

static const char *get_device_name(struct ibv_device *asked)
{
    (void)asked;
    return "played0";
}

static struct ibv_context *open_device(struct ibv_device *asked)
{
    struct ibv_context *opened = calloc(1, sizeof(*opened));

    opened->device = asked;
    opened->async_fd = eventfd(0, EFD_CLOEXEC);
    return opened;
}

static int close_device(struct ibv_context *opened)
{
    close(opened->async_fd);
    free(opened);
    return 0;
}

static int query_device(struct ibv_context *asked, struct ibv_device_attr *attr)
{
    (void)asked;
    *attr = (struct ibv_device_attr){
        .max_qp_wr = 1024, .max_sge = 16, .max_cqe = QUEUE, .max_srq_wr = QUEUE, .phys_port_cnt = 1};
    return 0;
}

static int query_port(struct ibv_context *asked, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    (void)asked;
    (void)port;
    *(struct ibv_port_attr *)(void *)attr =
        (struct ibv_port_attr){.state = IBV_PORT_ACTIVE, .max_msg_sz = UINT32_C(1) << 30};
    return 0;
}

static int get_async_event(struct ibv_context *asked, struct ibv_async_event *event)
{
    (void)asked;
    (void)event;
    return -1;
}

static struct ibv_pd *alloc_pd(struct ibv_context *asked)
{
    (void)asked;
    return &pd;
}

static int dealloc_pd(struct ibv_pd *given)
{
    (void)given;
    return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *given, void *base, size_t length, int access)
{
    struct ibv_mr *mr = calloc(1, sizeof(*mr));

    (void)given;
    (void)access;
    mr->addr = base;
    mr->length = length;
    return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ queues of the device */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *asked)
{
    struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

    channel->context = asked;
    channel->fd = eventfd(0, EFD_CLOEXEC);
    return channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    free(channel);
    return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *asked, int size, void *argument, struct ibv_comp_channel *channel,
                                int vector)
{
    struct ibv_cq *cq = calloc(1, sizeof(*cq));

    (void)argument;
    (void)channel;
    (void)vector;
    cq->context = asked;
    cq_size = (uint64_t)size;
    return cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
    free(cq);
    return 0;
}

static struct ibv_srq *create_srq(struct ibv_pd *given, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = calloc(1, sizeof(*srq));

    (void)given;
    (void)attr;
    srq->context = &context;
    return srq;
}

static int destroy_srq(struct ibv_srq *srq)
{
    free(srq);
    return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *given, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp = calloc(1, sizeof(*qp));

    (void)given;
    (void)attr;
    qp->context = &context;
    return qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
    free(qp);
    return 0;
}

/* -------------------------------------------------------------------------------------------------- connection manager */

static struct rdma_event_channel *create_event_channel(void)
{
    struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

    channel->fd = eventfd(0, EFD_CLOEXEC);
    return channel;
}

static void destroy_event_channel(struct rdma_event_channel *channel)
{
    close(channel->fd);
    free(channel);
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *argument,
                     enum rdma_port_space space)
{
    (void)space;
    *id = calloc(1, sizeof(**id));
    (*id)->channel = channel;
    (*id)->context = argument;
    return 0;
}

static int destroy_id(struct rdma_cm_id *id)
{
    free(id);
    return 0;
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    memcpy(&id->route.addr.src_addr, address, sizeof(struct sockaddr_in));
    id->verbs = &context;
    id->port_num = 1;
    return 0;
}

static int listen_there(struct rdma_cm_id *id, int backlog)
{
    (void)id;
    (void)backlog;
    return 0;
}

/* In place of the one that looks for the libraries. */
bool verbs_library_load(char *text, size_t text_size)
{
    (void)text;
    (void)text_size;
    if (!context.async_fd)
        context.async_fd = eventfd(0, EFD_CLOEXEC);
    verbs_calls = (struct verbs_calls){.get_device_name = get_device_name,
                                       .open_device = open_device,
                                       .close_device = close_device,
                                       .query_device = query_device,
                                       .query_port = query_port,
                                       .get_async_event = get_async_event,
                                       .alloc_pd = alloc_pd,
                                       .dealloc_pd = dealloc_pd,
                                       .reg_mr = reg_mr,
                                       .dereg_mr = dereg_mr,
                                       .create_comp_channel = create_comp_channel,
                                       .destroy_comp_channel = destroy_comp_channel,
                                       .create_cq = create_cq,
                                       .destroy_cq = destroy_cq,
                                       .create_srq = create_srq,
                                       .destroy_srq = destroy_srq,
                                       .create_qp = create_qp,
                                       .destroy_qp = destroy_qp,
                                       .create_event_channel = create_event_channel,
                                       .destroy_event_channel = destroy_event_channel,
                                       .create_id = create_id,
                                       .destroy_id = destroy_id,
                                       .bind_addr = bind_addr,
                                       .listen = listen_there};
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- the tests */

static void rdm_open(struct side *side)
{
    union tcp_address address = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}};
    struct ofp_info info = {.provider = VERBS_NAME,
                            .domain = "played0",
                            .ep_types = OFP_EP_RDM,
                            .caps = OFP_CAP_MSG | OFP_CAP_TAGGED,
                            .max_msg_size = 1 << 20,
                            .inject_size = 1024,
                            .tx_size = 256,
                            .rx_size = UINT64_MAX,
                            .segment_limit = OFP_SEGMENT_LIMIT,
                            .wait_fd = 1};

    head = tail = flushed = polled = 0;
    floods = false;
    fake_provider();
    verbs_info_set_address(&info, &address);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_that_never_empties),
        cmocka_unit_test(test_what_was_there_is_taken_without_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
