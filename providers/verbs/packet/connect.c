/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "packet/path.h"
#include "packet/work.h"
#include "queue/state.h"

/* A connection request contains the requester's port, in network order, and its hello. */
#define PORT_SIZE 2
#define RETRIES 6

/* A request of a peer while it is reported to the user, who answers it in that call. */
struct incoming {
    struct rdma_cm_id *id;
    uint8_t responder_resources, initiator_depth;
    bool answered;
};

static void handle_path_event(struct verbs_listener *listener, const struct verbs_event *event);

static struct incoming *incoming_of_handle(uint64_t request) { return (struct incoming *)(uintptr_t)request; }

/* Soft-RoCE takes a retry count of seven as unlimited, and keep-alive would never fail. */
static struct rdma_conn_param build_path_parameters(const struct verbs_path *path, const uint8_t *bytes, uint8_t length)
{
    struct rdma_conn_param param = verbs_parameters_build(path->rdm->domain, path->qp, bytes, length,
                                                          path->responder_resources, path->initiator_depth);

    if (param.retry_count > RETRIES)
        param.retry_count = RETRIES;
    return param;
}

/* ----------------------------------------------------------------------------------------------------------- asking */

int verbs_path_connect(struct ofpi_path *base, const uint8_t *hello, size_t length, char *text, size_t text_size)
{
    struct verbs_path *path = verbs_path_of(base);
    struct verbs_rdm *rdm = verbs_rdm_of(base->channel);
    union tcp_address from = rdm->address, to;
    uint8_t data[VERBS_HELLO_MAX];
    uint16_t port = htons(tcp_address_get_port(&rdm->address));
    int result;

    if (tcp_address_parse(base->peer->address, base->peer->address_length, &to) != 0)
        return -EINVAL;
    verbs_path_init(path, base, VERBS_PATH_REQUESTED, handle_path_event);
    memcpy(data, &port, PORT_SIZE);
    memcpy(data + PORT_SIZE, hello, length);
    path->request_data_length = verbs_private_data_encode(path->request_data, data, PORT_SIZE + length);
    result = verbs_id_open(rdm->domain, &path->listener, &from, NULL, &path->id, text, text_size);
    if (!result)
        result = verbs_path_pair_open(path);
    if (!result && verbs_calls.resolve_addr(path->id, NULL, &to.any, VERBS_RESOLVE_MS) != 0) {
        result = -errno;
        snprintf(text, text_size, "the connection manager finds no way there: %s", strerror(-result));
    }
    if (result)
        verbs_path_remove(path);
    return result;
}

static void report_no_listener(struct verbs_path *path)
{
    path->base->channel->user->refused(
        path->base, false,
        &(struct ofpi_path_end){.error = ECONNREFUSED, .absent = true, .text = "nobody listens there"});
}

static void report_rejection(struct verbs_path *path, bool later, int error, const char *why)
{
    path->base->channel->user->refused(path->base, later, &(struct ofpi_path_end){.error = error, .text = why});
}

static void fail_path(struct verbs_path *path, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
    if (path->state == VERBS_PATH_REQUESTED)
        report_rejection(path, false, error, text);
    else
        verbs_path_mark_failed(path, &(struct ofpi_path_end){.error = error, .unsure = true});
}

static void request_path(struct verbs_path *path)
{
    struct rdma_conn_param param = build_path_parameters(path, path->request_data, path->request_data_length);

    if (verbs_calls.connect(path->id, &param) != 0)
        fail_path(path, "cannot ask for a connection", errno);
}

static void path_request_answered(struct verbs_path *path, const struct verbs_event *event)
{
    int result;

    /* The values in the event are already from this side's view. */
    verbs_resources_set_limit(&path->responder_resources, event->responder_resources);
    verbs_resources_set_limit(&path->initiator_depth, event->initiator_depth);
    result = verbs_qp_connect(path->rdm->domain, path->id, path->qp, path->responder_resources, path->initiator_depth);
    if (!result && verbs_calls.establish(path->id) != 0)
        result = -errno;
    if (result) {
        fail_path(path, "the queue pair cannot be connected", -result);
        return;
    }
    path->connected = true;
    path->state = VERBS_PATH_UP;
    path->base->channel->user->accepted(path->base, event->data, event->data_length);
}

static void path_request_rejected(struct verbs_path *path, const struct verbs_event *event)
{
    char text[128];

    if (event->status == VERBS_REJECTED_BY_PROGRAM) {
        report_rejection(path, event->data_length && event->data[0], ECONNREFUSED, "the peer refused");
    } else if (event->status == VERBS_REJECTED_NO_SERVICE) {
        report_no_listener(path);
    } else {
        snprintf(text, sizeof(text), "the other side's connection manager refused, for its reason %d", event->status);
        report_rejection(path, event->status == VERBS_REJECTED_STALE, ECONNREFUSED, text);
    }
}

/* -------------------------------------------------------------------------------------------------------- being asked */

static int accept_path_request(struct verbs_path *path, const uint8_t *hello, size_t length)
{
    uint8_t bytes[1 + VERBS_PRIVATE_MAX];
    struct rdma_conn_param param;
    int result = verbs_path_pair_open(path);

    if (!result)
        result =
            verbs_qp_connect(path->rdm->domain, path->id, path->qp, path->responder_resources, path->initiator_depth);
    if (result)
        return result;
    param = build_path_parameters(path, bytes, verbs_private_data_encode(bytes, hello, length));
    return verbs_calls.accept(path->id, &param) == 0 ? 0 : -errno;
}

int verbs_path_accept(struct ofpi_path *base, uint64_t request, const uint8_t *hello, size_t length)
{
    struct verbs_path *path = verbs_path_of(base);
    struct incoming *incoming = incoming_of_handle(request);
    int result;

    verbs_path_init(path, base, VERBS_PATH_ACCEPTED, handle_path_event);
    incoming->answered = true;
    path->id = incoming->id;
    path->id->context = &path->listener;
    verbs_resources_set_limit(&path->responder_resources, incoming->responder_resources);
    verbs_resources_set_limit(&path->initiator_depth, incoming->initiator_depth);
    result = accept_path_request(path, hello, length);
    if (result) {
        uint8_t later = true;

        verbs_id_reject(path->id, &later, sizeof(later));
        verbs_path_remove(path);
    }
    path->connected = !result;
    return result;
}

void verbs_path_reject(struct ofpi_channel *channel, uint64_t request, bool later)
{
    struct incoming *incoming = incoming_of_handle(request);
    uint8_t data = later;

    incoming->answered = true;
    verbs_id_reject(incoming->id, &data, sizeof(data));
    verbs_id_close_later(verbs_rdm_of(channel)->domain, incoming->id, NULL);
}

/*
 * The requester is at the address of its request, and at the port in its private data. A probe has no private data.
 */
static void report_path_request(struct verbs_rdm *rdm, struct incoming *incoming, const struct verbs_event *event)
{
    union tcp_address address;
    uint16_t port;

    if (event->id->verbs != rdm->domain->port->context || event->data_length <= PORT_SIZE)
        return;
    memcpy(&port, event->data, PORT_SIZE);
    verbs_id_get_peer_address(event->id, &address);
    tcp_address_set_port(&address, ntohs(port));
    rdm->channel->user->requested(rdm->channel,
                                  &(struct ofpi_path_request){.id = (uintptr_t)incoming,
                                                              .address = &address,
                                                              .address_length = tcp_address_get_length(&address),
                                                              .hello = event->data + PORT_SIZE,
                                                              .hello_length = (size_t)event->data_length - PORT_SIZE});
}

void verbs_path_requested(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_rdm *rdm = OFP_CONTAINER_OF(listener, struct verbs_rdm, listener);
    struct incoming incoming = {
        .id = event->id, .responder_resources = event->responder_resources, .initiator_depth = event->initiator_depth};

    if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return;
    event->id->context = NULL;
    report_path_request(rdm, &incoming, event);
    if (!incoming.answered)
        verbs_path_reject(rdm->channel, (uintptr_t)&incoming, false);
}

/* ----------------------------------------------------------------------------------------------------------- events */

static void path_confirmed(struct verbs_path *path)
{
    if (path->state != VERBS_PATH_ACCEPTED)
        return;
    OFP_CHECK(path->connected && !path->stopped);
    path->state = VERBS_PATH_UP;
    path->base->channel->user->confirmed(path->base);
}

static void handle_connecting_event(struct verbs_path *path, const struct verbs_event *event)
{
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (verbs_calls.resolve_route(path->id, VERBS_RESOLVE_MS) != 0)
            fail_path(path, "no route", errno);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request_path(path);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        path_request_answered(path, event);
        break;
    case RDMA_CM_EVENT_REJECTED:
        path_request_rejected(path, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        fail_path(path, "no way to the address", event->status < 0 ? -event->status : EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail_path(path, "the other side does not answer", event->status < 0 ? -event->status : ETIMEDOUT);
        break;
    default:
        fail_path(path, "the connection failed", event->status < 0 ? -event->status : ECONNABORTED);
        break;
    }
}

/* The process, the endpoint or only this path has ended. A probe tells which. */
static void path_disconnected(struct verbs_path *path)
{
    verbs_path_mark_failed(path, &(struct ofpi_path_end){.error = ECONNRESET, .unsure = true});
}

static void path_answer_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    path_disconnected(OFP_CONTAINER_OF(timer, struct verbs_path, answer));
}

/* Wait for the failed completion of a read or write that the peer rejected. */
static void start_answer_timer(struct verbs_path *path)
{
    if (path->answer.position)
        return;
    path->answer.expired = path_answer_expired;
    path->answer.deadline = verbs_core->now() + VERBS_ANSWER_NS;
    verbs_core->timer_start(path->rdm->domain->base, &path->answer);
}

static void handle_path_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_path *path = OFP_CONTAINER_OF(listener, struct verbs_path, listener);

    if (path->state == VERBS_PATH_REQUESTED)
        handle_connecting_event(path, event);
    else if (event->type == RDMA_CM_EVENT_ESTABLISHED)
        path_confirmed(path);
    else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        verbs_path_mark_failed(path, &(struct ofpi_path_end){.error = ENODEV, .text = "the device was removed"});
    else if (event->type == RDMA_CM_EVENT_DISCONNECTED && path->moves && path->state == VERBS_PATH_UP)
        start_answer_timer(path);
    else if (event->type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
        path_disconnected(path);
}
