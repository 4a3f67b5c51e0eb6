/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device of verbs that is played here, in place of the libraries. A test sets the functions of its queues in `context.ops` before it opens
 * an endpoint.
 */
#ifndef VERBS_FIXTURE_H
#define VERBS_FIXTURE_H

#include "core_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/place.h"

enum { QUEUE = 4096 }; /* completions, or receives, at most */

static uint64_t cq_size; /* entries of the completion queue that was made last */

struct verbs_calls verbs_calls;
pthread_mutex_t verbs_library_lock = PTHREAD_MUTEX_INITIALIZER;
__typeof__(ibv_reg_dmabuf_mr) *verbs_reg_dmabuf_mr;

/* Tests use only their addresses. */
struct ibv_pd {
    char unused;
};

static struct ibv_device device;
static struct ibv_context context = {.device = &device}; /* the test sets the functions of its queues */
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
    *attr = (struct ibv_device_attr){.max_qp_wr = 1024,
                                     .max_sge = 16,
                                     .max_cqe = QUEUE,
                                     .max_srq_wr = QUEUE,
                                     .phys_port_cnt = 1,
                                     .atomic_cap = IBV_ATOMIC_HCA};
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
    qp->context = &context;
    qp->qp_context = attr->qp_context;
    return qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
    free(qp);
    return 0;
}

/* -------------------------------------------------------------------------------------------------- connection manager */

/* The one event of the played connection manager, until it is read or its id is destroyed. */
static struct rdma_cm_event cm_event;
static pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER; /* ids go in a thread of the provider's */
static struct rdma_event_channel *cm_channel;               /* the one that was made last */
static struct rdma_cm_id *cm_listener;                      /* the id that listens */

static struct rdma_event_channel *create_event_channel(void)
{
    struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

    channel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cm_channel = channel;
}

static void destroy_event_channel(struct rdma_event_channel *channel)
{
    close(channel->fd);
    free(channel);
}

static inline void cm_tell(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
    pthread_mutex_lock(&cm_lock);
    assert_null(cm_event.id);
    cm_event = (struct rdma_cm_event){.id = id, .event = type};
    pthread_mutex_unlock(&cm_lock);
    assert_int_equal(eventfd_write(cm_channel->fd, 1), 0);
}

static int get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    eventfd_t count;
    bool some;

    pthread_mutex_lock(&cm_lock);
    some = cm_event.id != NULL;
    pthread_mutex_unlock(&cm_lock);
    eventfd_read(channel->fd, &count);
    *event = &cm_event;
    return some ? 0 : -1;
}

static int ack_cm_event(struct rdma_cm_event *event)
{
    pthread_mutex_lock(&cm_lock);
    event->id = NULL;
    pthread_mutex_unlock(&cm_lock);
    return 0;
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
    pthread_mutex_lock(&cm_lock);
    if (cm_event.id == id)
        cm_event.id = NULL;
    pthread_mutex_unlock(&cm_lock);
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
    (void)backlog;
    cm_listener = id;
    return 0;
}

/* The peer is resolved and answers the request. */
static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout)
{
    (void)from;
    (void)to;
    (void)timeout;
    cm_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    return 0;
}

static int resolve_route(struct rdma_cm_id *id, int timeout)
{
    (void)timeout;
    cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return 0;
}

static int connect_there(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    (void)param;
    cm_tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE);
    return 0;
}

static int establish_id(struct rdma_cm_id *id)
{
    (void)id;
    return 0;
}

static int disconnect_id(struct rdma_cm_id *id)
{
    (void)id;
    return 0;
}

static int init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    (void)id;
    (void)attr;
    *mask = 0;
    return 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    (void)attr;
    (void)mask;
    return 0;
}

/* Replaces the function that loads the libraries. */
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
                                       .listen = listen_there,
                                       .get_cm_event = get_cm_event,
                                       .ack_cm_event = ack_cm_event,
                                       .resolve_addr = resolve_addr,
                                       .resolve_route = resolve_route,
                                       .connect = connect_there,
                                       .establish = establish_id,
                                       .disconnect = disconnect_id,
                                       .init_qp_attr = init_qp_attr,
                                       .modify_qp = modify_qp};
    return true;
}

/* An info of this device; a test changes the rest. */
static inline struct ofp_info played_info(uint32_t ep_type, uint64_t caps)
{
    union tcp_address address = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}};
    struct ofp_info info = {.provider = VERBS_NAME,
                            .domain = "played0",
                            .ep_types = ep_type,
                            .caps = caps,
                            .max_msg_size = 1 << 20,
                            .inject_size = 1024,
                            .tx_size = 256,
                            .rx_size = UINT64_MAX,
                            .segment_limit = OFP_SEGMENT_LIMIT,
                            .wait_fd = 1};

    verbs_info_set_address(&info, &address);
    return info;
}

#endif
