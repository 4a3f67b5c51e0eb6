/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "packet/number.h"
#include "packet/probe.h"
#include "packet/work.h"
#include "queue/state.h"

/* What comes with a request: the asker's port, in network order, and the hello. */
#define PORT_SIZE 2
#define RETRIES 6

/* While requests are told of. Answered within that. */
struct asked {
    struct rdma_cm_id *id;
    uint8_t responder_resources, initiator_depth;
    bool answered;
};

static void path_event(struct verbs_listener *listener, const struct verbs_event *event);

static struct asked *asked_of(uint64_t request) { return (struct asked *)(uintptr_t)request; }

/* ------------------------------------------------------------------------------------------------ beginning and end */

static void begin(struct verbs_path *path, struct ofpi_path *base, enum verbs_path_state state)
{
    struct verbs_rdm *rdm = verbs_rdm_of(base->channel);

    path->listener.event = path_event;
    path->base = base;
    path->rdm = rdm;
    path->state = (uint8_t)state;
    path->responder_resources = rdm->domain->port->limits.responder_resources;
    path->initiator_depth = rdm->domain->port->limits.initiator_depth;
    ofp_list_append(&rdm->paths, &path->node);
}

/* Every work request of every path, and every posted receive, may want an entry at once. */
static int reserve(struct verbs_rdm *rdm)
{
    uint32_t places = rdm->places + rdm->depth, size = rdm->cq_size;

    while (size < places)
        size *= 2;
    if (size > rdm->cq_size && verbs_calls.resize_cq(rdm->cq, (int)size) != 0)
        return -ENOBUFS;
    rdm->cq_size = size;
    rdm->places = places;
    return 0;
}

static struct ibv_qp *create_pair(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .qp_context = path->told,
        .send_cq = rdm->cq,
        .recv_cq = rdm->cq,
        .srq = rdm->srq,
        .cap = {.max_send_wr = rdm->depth, .max_send_sge = 1, .max_inline_data = rdm->channel->limits.inline_size}};

    return verbs_calls.create_qp(rdm->domain->pd, &attr);
}

/* A negative errno, and there is none. */
static int make_pair(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;
    int result = reserve(rdm);

    if (result)
        return result;
    path->told = calloc(1, sizeof(*path->told));
    path->qp = path->told ? create_pair(path) : NULL;
    if (path->qp) {
        path->told->id = path->id;
        path->number = path->qp->qp_num;
        if (verbs_number_add(rdm, path))
            return verbs_state_initialize(rdm->domain, path->id, path->qp);
        verbs_calls.destroy_qp(path->qp);
        path->qp = NULL;
        errno = ENOMEM;
    }
    result = -errno;
    free(path->told);
    rdm->places -= rdm->depth;
    return result;
}

static void forget_pair(struct verbs_path *path)
{
    verbs_number_remove(path->rdm, path);
    path->rdm->places -= path->rdm->depth;
    path->qp = NULL;
}

/*
 * The device lets go of everybody's memory. A queue pair with gets or puts under way is destroyed at once, as their memory goes back
 * to its owners; any other has nothing but receives, of which it takes no more in the error state. Those that it has taken come
 * from the completion queue, before it is destroyed.
 */
static void let_go(struct verbs_path *path)
{
    if (path->quiet)
        return;
    path->quiet = true;
    verbs_core->timer_stop(path->rdm->domain->base, &path->answer);
    verbs_probe_stop(path);
    verbs_work_flush(path->rdm);
    path->rdm->chained = NULL;
    if (path->connected)
        verbs_calls.disconnect(path->id);
    if (path->qp)
        verbs_state_fail(path->qp);
    if (path->moves) {
        verbs_calls.destroy_qp(path->qp);
        free(path->told);
        forget_pair(path);
    }
    verbs_work_drop(path);
}

static void leave(struct verbs_path *path)
{
    struct ibv_qp *qp;

    let_go(path);
    qp = path->qp;
    if (qp)
        forget_pair(path);
    if (path->id)
        verbs_reap(path->rdm->domain, path->id, qp);
    ofp_list_remove(&path->node);
    if (ofp_list_linked(&path->event))
        ofp_list_remove(&path->event);
}

void verbs_path_look(struct verbs_path *path)
{
    if (!ofp_list_linked(&path->event))
        ofp_list_append(&path->rdm->events, &path->event);
}

void verbs_path_failed(struct verbs_path *path, const struct ofpi_path_end *end)
{
    if (path->end.error)
        return;
    path->end = *end;
    if (path->state != VERBS_PATH_CLOSED)
        path->state = VERBS_PATH_FAILED;
    verbs_path_look(path);
}

void verbs_path_close(struct ofpi_path *base)
{
    struct verbs_path *path = verbs_path_of(base);
    bool leaves = path->connected && path->state != VERBS_PATH_FAILED;

    path->state = VERBS_PATH_CLOSED;
    if (!leaves || path->moves)
        let_go(path);
    verbs_path_look(path);
}

bool verbs_path_is_over(struct verbs_path *path)
{
    bool waits = path->connected && !path->quiet && !path->end.error;

    return !waits || verbs_work_is_over(path);
}

/* It has an end to tell, or to wait for. */
static bool tell(struct verbs_path *path)
{
    const struct ofpi_channel_user *user = path->rdm->channel->user;

    if (path->state == VERBS_PATH_FAILED) {
        user->broken(path->base, &path->end);
        return true;
    }
    if (!verbs_path_is_over(path))
        return false;
    if (!path->quiet) {
        /* Once more, when the completion queue has been emptied. */
        let_go(path);
        verbs_path_look(path);
        return false;
    }
    leave(path);
    user->closed(path->base);
    return true;
}

int verbs_paths_tell(struct verbs_rdm *rdm)
{
    struct ofp_list now, *node;
    int count = 0;

    if (ofp_list_empty(&rdm->events))
        return 0;
    now = rdm->events;
    now.next->previous = now.previous->next = &now;
    ofp_list_init(&rdm->events);
    while ((node = ofp_list_pop(&now)))
        count += tell(OFP_CONTAINER_OF(node, struct verbs_path, event));
    return count;
}

void verbs_paths_give_up(struct verbs_rdm *rdm)
{
    while (!ofp_list_empty(&rdm->paths))
        leave(OFP_CONTAINER_OF(rdm->paths.next, struct verbs_path, node));
}

/* Soft-RoCE takes seven retries for endless ones, and keep-alive would never hear that nobody answers. */
static struct rdma_conn_param parameters(const struct verbs_path *path, const uint8_t *bytes, uint8_t length)
{
    struct rdma_conn_param param =
        verbs_parameters(path->rdm->domain, path->qp, bytes, length, path->responder_resources, path->initiator_depth);

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
    uint16_t port = htons(tcp_address_port(&rdm->address));
    int result;

    if (tcp_address_parse(base->peer->address, base->peer->address_length, &to) != 0)
        return -EINVAL;
    begin(path, base, VERBS_PATH_ASKED);
    memcpy(data, &port, PORT_SIZE);
    memcpy(data + PORT_SIZE, hello, length);
    path->said_length = verbs_private_data(path->said, data, PORT_SIZE + length);
    result = verbs_id_open(rdm->domain, &path->listener, &from, NULL, &path->id, text, text_size);
    if (!result)
        result = make_pair(path);
    if (!result && verbs_calls.resolve_addr(path->id, NULL, &to.any, VERBS_RESOLVE_MS) != 0) {
        result = -errno;
        snprintf(text, text_size, "the connection manager finds no way there: %s", strerror(-result));
    }
    if (result)
        leave(path);
    return result;
}

static void unheard(struct verbs_path *path)
{
    path->base->channel->user->refused(
        path->base, false,
        &(struct ofpi_path_end){.error = ECONNREFUSED, .absent = true, .text = "nobody listens there"});
}

static void refused(struct verbs_path *path, bool later, int error, const char *why)
{
    path->base->channel->user->refused(path->base, later, &(struct ofpi_path_end){.error = error, .text = why});
}

static void fail(struct verbs_path *path, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
    if (path->state == VERBS_PATH_ASKED)
        refused(path, false, error, text);
    else
        verbs_path_failed(path, &(struct ofpi_path_end){.error = error, .unsure = true});
}

static void ask(struct verbs_path *path)
{
    struct rdma_conn_param param = parameters(path, path->said, path->said_length);

    if (verbs_calls.connect(path->id, &param) != 0)
        fail(path, "cannot ask for a connection", errno);
}

static void answered(struct verbs_path *path, const struct verbs_event *event)
{
    int result;

    /* As the manager tells them they are ours to take already. */
    verbs_limit(&path->responder_resources, event->responder_resources);
    verbs_limit(&path->initiator_depth, event->initiator_depth);
    result =
        verbs_state_connect(path->rdm->domain, path->id, path->qp, path->responder_resources, path->initiator_depth);
    if (!result && verbs_calls.establish(path->id) != 0)
        result = -errno;
    if (result) {
        fail(path, "the queue pair cannot be connected", -result);
        return;
    }
    path->connected = true;
    path->state = VERBS_PATH_UP;
    path->base->channel->user->accepted(path->base, event->data, event->data_length);
}

static void rejected(struct verbs_path *path, const struct verbs_event *event)
{
    char text[128];

    if (event->status == VERBS_REJECTED_BY_PROGRAM) {
        refused(path, event->data_length && event->data[0], ECONNREFUSED, "the peer refused");
    } else if (event->status == VERBS_REJECTED_NO_SERVICE) {
        unheard(path);
    } else {
        snprintf(text, sizeof(text), "the other side's connection manager refused, for its reason %d", event->status);
        refused(path, event->status == VERBS_REJECTED_STALE, ECONNREFUSED, text);
    }
}

/* -------------------------------------------------------------------------------------------------------- being asked */

static int say_yes(struct verbs_path *path, const uint8_t *hello, size_t length)
{
    uint8_t bytes[1 + VERBS_PRIVATE_MAX];
    struct rdma_conn_param param;
    int result = make_pair(path);

    if (!result)
        result = verbs_state_connect(path->rdm->domain, path->id, path->qp, path->responder_resources,
                                     path->initiator_depth);
    if (result)
        return result;
    param = parameters(path, bytes, verbs_private_data(bytes, hello, length));
    return verbs_calls.accept(path->id, &param) == 0 ? 0 : -errno;
}

int verbs_path_accept(struct ofpi_path *base, uint64_t request, const uint8_t *hello, size_t length)
{
    struct verbs_path *path = verbs_path_of(base);
    struct asked *asked = asked_of(request);
    int result;

    begin(path, base, VERBS_PATH_ACCEPTED);
    asked->answered = true;
    path->id = asked->id;
    path->id->context = &path->listener;
    verbs_limit(&path->responder_resources, asked->responder_resources);
    verbs_limit(&path->initiator_depth, asked->initiator_depth);
    result = say_yes(path, hello, length);
    if (result) {
        uint8_t later = true;

        verbs_refuse(path->id, &later, sizeof(later));
        leave(path);
    }
    path->connected = !result;
    return result;
}

void verbs_path_refuse(struct ofpi_channel *channel, uint64_t request, bool later)
{
    struct asked *asked = asked_of(request);
    uint8_t data = later;

    asked->answered = true;
    verbs_refuse(asked->id, &data, sizeof(data));
    verbs_reap(verbs_rdm_of(channel)->domain, asked->id, NULL);
}

/* Who asks is at the address that it calls from, and at the port that it says. A probe says nothing. */
static void tell_of_request(struct verbs_rdm *rdm, struct asked *asked, const struct verbs_event *event)
{
    union tcp_address address;
    uint16_t port;

    if (event->id->verbs != rdm->domain->port->context || event->data_length <= PORT_SIZE)
        return;
    memcpy(&port, event->data, PORT_SIZE);
    verbs_id_peer(event->id, &address);
    tcp_address_set_port(&address, ntohs(port));
    rdm->channel->user->requested(rdm->channel,
                                  &(struct ofpi_path_request){.id = (uintptr_t)asked,
                                                              .address = &address,
                                                              .address_length = tcp_address_length(&address),
                                                              .hello = event->data + PORT_SIZE,
                                                              .hello_length = (size_t)event->data_length - PORT_SIZE});
}

void verbs_path_asked(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_rdm *rdm = OFP_CONTAINER_OF(listener, struct verbs_rdm, listener);
    struct asked asked = {
        .id = event->id, .responder_resources = event->responder_resources, .initiator_depth = event->initiator_depth};

    if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return;
    event->id->context = NULL;
    tell_of_request(rdm, &asked, event);
    if (!asked.answered)
        verbs_path_refuse(rdm->channel, (uintptr_t)&asked, false);
}

/* ----------------------------------------------------------------------------------------------------------- events */

static void confirmed(struct verbs_path *path)
{
    if (path->state != VERBS_PATH_ACCEPTED)
        return;
    path->state = VERBS_PATH_UP;
    path->base->channel->user->confirmed(path->base);
}

static void asking_event(struct verbs_path *path, const struct verbs_event *event)
{
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (verbs_calls.resolve_route(path->id, VERBS_RESOLVE_MS) != 0)
            fail(path, "no route", errno);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        ask(path);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        answered(path, event);
        break;
    case RDMA_CM_EVENT_REJECTED:
        rejected(path, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        fail(path, "no way to the address", event->status < 0 ? -event->status : EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail(path, "the other side does not answer", event->status < 0 ? -event->status : ETIMEDOUT);
        break;
    default:
        fail(path, "the connection failed", event->status < 0 ? -event->status : ECONNABORTED);
        break;
    }
}

/* Its process may have ended, its endpoint been closed, or only this path: who listens there tells. */
static void ended_there(struct verbs_path *path)
{
    verbs_path_failed(path, &(struct ofpi_path_end){.error = ECONNRESET, .unsure = true});
}

static void no_answer(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    ended_there(OFP_CONTAINER_OF(timer, struct verbs_path, answer));
}

/* A get or put that the other side refused, which ended the path, fails meanwhile. */
static void wait_for_answer(struct verbs_path *path)
{
    if (path->answer.position)
        return;
    path->answer.expired = no_answer;
    path->answer.deadline = verbs_core->now() + VERBS_ANSWER_NS;
    verbs_core->timer_start(path->rdm->domain->base, &path->answer);
}

static void path_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_path *path = OFP_CONTAINER_OF(listener, struct verbs_path, listener);

    if (path->state == VERBS_PATH_ASKED)
        asking_event(path, event);
    else if (event->type == RDMA_CM_EVENT_ESTABLISHED)
        confirmed(path);
    else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        verbs_path_failed(path, &(struct ofpi_path_end){.error = ENODEV, .text = "the device was removed"});
    else if (event->type == RDMA_CM_EVENT_DISCONNECTED && path->moves && path->state == VERBS_PATH_UP)
        wait_for_answer(path);
    else if (event->type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
        ended_there(path);
}
