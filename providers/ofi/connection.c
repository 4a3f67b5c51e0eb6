/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of type MSG: libfabric's connected endpoints. For a connection request, libfabric's endpoint is opened when
 * the request is accepted: an earlier one would own the connection, and the request could not be rejected any more.
 * Receives posted before wait in `early`. When a connection has ended, libfabric's endpoint is closed before the core
 * ends the pending operations, so that no memory of theirs is written afterwards. States: no peer; connecting (a peer,
 * `deadline` runs); `up`; `quits`. Called by the core and by connection events, under the domain's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "connection.h"

#include "events.h"
#include "passive.h"

#define SECOND UINT64_C(1000000000)

/*
 * An endpoint of type MSG. Invariants: `up` and `quits` imply a peer; `early` is empty once `ep` is open; `request` is
 * set only before accept.
 */
struct bridge_msg {
    struct bridge_endpoint base; /* first; `ep` is NULL before the request is accepted, and after the end */
    struct bridge_event_handler handler;
    struct ofp_endpoint *endpoint;
    struct bridge_request *request; /* owned until it is accepted or rejected */
    struct ofp_peer *peer;          /* from connect or accept until it is lost */
    struct ofp_timer deadline;      /* for the answer */
    struct bridge_block *early;     /* receives that wait for `ep`; linked by `next` */
    struct bridge_block **early_end;
    bool answers; /* this side accepted the connection */
    bool up;
    bool quits; /* shuts down when all sends have completed */
};

static inline struct bridge_msg *bridge_msg_of(const struct ofp_endpoint *endpoint) { return endpoint->private; }

/*
 * A call into libfabric may complete any operation of the domain. Where completion queues have no descriptors, a
 * sleeping thread would not notice that, so wake it.
 */
static void notify_sleepers(const struct ofp_endpoint *endpoint)
{
    bridge_sleepers_notify(bridge_domain_of(endpoint->domain)->events);
}

static const struct bridge_library *library_of_connection(const struct bridge_msg *msg)
{
    return bridge_domain_of(msg->endpoint->domain)->library;
}

/* ---------------------------------------------------------------------------------------------- end of a connection */

/* Deliver all completions that have arrived, then mark the peer lost. */
static void mark_peer_lost(struct bridge_msg *msg, int error, const char *text)
{
    while (msg->peer && bridge_endpoint_progress(msg->endpoint) > 0)
        ;
    if (msg->peer)
        ofp_peer_lost(msg->peer, error, false, text);
}

static void fail_connection(struct bridge_msg *msg, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, library_of_connection(msg)->strerror(error));
    mark_peer_lost(msg, error, text);
}

static void disconnect_peer(struct ofp_peer *peer)
{
    struct bridge_msg *msg = bridge_msg_of(peer->endpoint);

    msg->peer = NULL;
    msg->up = msg->quits = false;
    msg->early = NULL;
    bridge_core->timer_stop(peer->endpoint->domain, &msg->deadline);
    bridge_endpoint_close_objects(peer->endpoint);
}

/*
 * Operations were flushed. Read the connection event with the reason, which comes before or together with them; not
 * every provider sends one.
 */
static void end_flushed_connection(struct bridge_msg *msg)
{
    msg->base.flushed = false;
    bridge_events_read(bridge_domain_of(msg->endpoint->domain)->events);
    mark_peer_lost(msg, ECONNRESET, "the connection broke");
}

static void shut_down_if_drained(struct bridge_msg *msg)
{
    struct ofp_peer *peer = msg->peer;

    OFP_CHECK(msg->quits && peer);
    if (msg->base.sends)
        return;
    msg->base.ep->cm->shutdown(msg->base.ep, 0);
    ofp_peer_lost(peer, 0, false, "shut down here");
}

static int shut_down_connection(struct ofp_peer *peer)
{
    struct bridge_msg *msg = bridge_msg_of(peer->endpoint);

    msg->quits = true;
    shut_down_if_drained(msg);
    notify_sleepers(peer->endpoint);
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- events */

static void handle_connected(struct bridge_msg *msg, const struct bridge_connection_event *event)
{
    OFP_CHECK(msg->peer && msg->base.ep);
    bridge_core->timer_stop(msg->endpoint->domain, &msg->deadline);
    msg->up = true;
    if (!msg->answers)
        ofp_connection_answered(msg->peer, event->data, event->length);
    ofp_peer_up(msg->peer);
}

static void handle_rejection(struct bridge_msg *msg, const struct bridge_connection_event *event)
{
    ofp_connection_answered(msg->peer, event->data, event->length);
    mark_peer_lost(msg, ECONNREFUSED,
                   event->length ? "the request was rejected" : "the request was rejected, or nobody listens");
}

static void handle_connection_event(struct bridge_event_handler *handler, const struct bridge_connection_event *event)
{
    struct bridge_msg *msg = OFP_CONTAINER_OF(handler, struct bridge_msg, handler);

    if (!msg->peer)
        return;
    if (!event->error && event->kind == LF_EVENT_CONNECTED)
        handle_connected(msg, event);
    else if (!event->error && event->kind == LF_EVENT_SHUTDOWN)
        mark_peer_lost(msg, msg->up ? ESHUTDOWN : ECONNRESET, "the other side shut down, or ended");
    else if (event->error == ECONNREFUSED && !msg->up)
        handle_rejection(msg, event);
    else if (event->error)
        /* ESHUTDOWN stands for an orderly end here. */
        fail_connection(msg, msg->up ? "the connection broke" : "no connection",
                        event->error == ESHUTDOWN ? ECONNRESET : event->error);
}

/* ------------------------------------------------------------------------------------------------ connection requests */

static void handle_answer_timeout(struct ofp_timer *timer, uint64_t now)
{
    struct bridge_msg *msg = OFP_CONTAINER_OF(timer, struct bridge_msg, deadline);
    char text[128];

    (void)now;
    snprintf(text, sizeof(text), "no answer within %" PRIu64 " s (OFIPY_CONNECT_TIMEOUT)",
             bridge_core->param_size("CONNECT_TIMEOUT"));
    mark_peer_lost(msg, ETIMEDOUT, text);
}

static void start_deadline(struct bridge_msg *msg)
{
    msg->deadline.expired = handle_answer_timeout;
    msg->deadline.deadline = bridge_core->now() + bridge_core->param_size("CONNECT_TIMEOUT") * SECOND;
    bridge_core->timer_start(msg->endpoint->domain, &msg->deadline);
}

static int create_endpoint(struct bridge_msg *msg, struct lf_info *info)
{
    const struct bridge_domain *domain = bridge_domain_of(msg->endpoint->domain);
    struct bridge_endpoint *self = &msg->base;
    int error = domain->domain->ops->endpoint(domain->domain, info, &self->ep, &msg->handler);

    if (error) {
        self->ep = NULL;
        return -bridge_error_convert(error);
    }
    error = self->ep->fid.ops->bind(&self->ep->fid, &domain->events->eq->fid, 0);
    if (!error)
        error = self->ep->fid.ops->bind(&self->ep->fid, &self->cq->fid, LF_SEND | LF_RECV);
    if (!error)
        error = self->ep->fid.ops->control(&self->ep->fid, LF_COMMAND_ENABLE, NULL);
    if (!error)
        bridge_regions_attach(msg->endpoint);
    return -bridge_error_convert(error);
}

static int connect_endpoint(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct bridge_msg *msg = bridge_msg_of(peer->endpoint);
    struct lf_ep *ep = msg->base.ep;
    int error;

    msg->peer = peer;
    error = ep->cm->connect(ep, peer->address, peer->private_data, peer->private_data_length);
    if (error) {
        snprintf(text, text_size, "no connection: %s",
                 library_of_connection(msg)->strerror(error < 0 ? -error : error));
        return -bridge_error_convert(error);
    }
    start_deadline(msg);
    notify_sleepers(peer->endpoint);
    return 0;
}

static void start_early_receives(struct bridge_msg *msg)
{
    OFP_CHECK(msg->base.ep && !msg->request);
    while (msg->early) {
        struct bridge_block *block = msg->early;

        msg->early = block->next;
        if (block->pending)
            bridge_receive_start(msg->endpoint, block);
        else
            bridge_block_free(&msg->base, block);
    }
}

static int accept_request(struct ofp_peer *peer, const void *data, size_t length)
{
    struct bridge_msg *msg = bridge_msg_of(peer->endpoint);
    struct bridge_request *request = msg->request;
    struct lf_ep *ep;
    int error;

    msg->peer = peer;
    OFP_CHECK(request && !msg->base.ep && !msg->up);
    msg->answers = true;
    msg->request = NULL;
    error = create_endpoint(msg, request->info);
    if (error) {
        bridge_request_reject(request, NULL, 0);
        return error;
    }
    ep = msg->base.ep;
    start_early_receives(msg);
    error = ep->cm->accept(ep, data, length);
    bridge_request_free(request);
    notify_sleepers(peer->endpoint);
    if (error)
        return -ECONNRESET;
    start_deadline(msg);
    /* Before 1.18 tcp sends the answer when its events are read next. */
    bridge_events_read(bridge_domain_of(peer->endpoint->domain)->events);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- opening and closing */

static int open_requesting_endpoint(struct bridge_msg *msg, const char *service, char *text, size_t text_size)
{
    const struct bridge_domain *domain = bridge_domain_of(msg->endpoint->domain);
    struct lf_info *info;
    int error = bridge_info_find_own(domain, msg->endpoint->info, service, true, &info, text, text_size);

    if (error)
        return error;
    bridge_limits_set(msg->endpoint, info);
    error = create_endpoint(msg, info);
    domain->library->freeinfo(info);
    return error;
}

static int open_connection_objects(struct bridge_msg *msg, const char *service, char *text, size_t text_size)
{
    struct ofp_endpoint *endpoint = msg->endpoint;
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);
    bool waits = endpoint->info->wait_fd && !domain->events_wake_all;
    int error;

    msg->base.cq = bridge_cq_open(domain, waits, &error);
    if (!error && waits)
        error = bridge_queue_watch(endpoint);
    if (!error && endpoint->request)
        bridge_limits_set(endpoint, ((struct bridge_request *)(uintptr_t)endpoint->request)->info);
    else if (!error)
        error = open_requesting_endpoint(msg, service, text, text_size);
    return error;
}

static int open_endpoint(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    struct bridge_msg *msg = bridge_msg_of(endpoint);
    int error;

    msg->base.watch.fd = -1;
    msg->base.connects = true;
    msg->handler.handle = handle_connection_event;
    msg->endpoint = endpoint;
    error = bridge_open_error_convert(open_connection_objects(msg, service, text, text_size));
    if (error) {
        if (!text[0])
            snprintf(text, text_size, "%s cannot open an endpoint%s%s: %s", endpoint->info->provider,
                     service ? " as " : "", service ? service : "", library_of_connection(msg)->strerror(-error));
        bridge_endpoint_close_objects(endpoint);
        return error;
    }
    msg->request = (struct bridge_request *)(uintptr_t)endpoint->request;
    return 0;
}

static int drain_connection(struct ofp_endpoint *endpoint)
{
    const struct bridge_msg *msg = bridge_msg_of(endpoint);

    return msg->up && msg->base.sends ? -EAGAIN : 0;
}

static uint64_t count_unsent(const struct ofp_peer *peer) { return bridge_peer_of(peer)->completed; }

static void close_endpoint(struct ofp_endpoint *endpoint, uint64_t deadline)
{
    struct bridge_msg *msg = bridge_msg_of(endpoint);

    (void)deadline;
    bridge_core->timer_stop(endpoint->domain, &msg->deadline);
    if (msg->request)
        bridge_request_reject(msg->request, NULL, 0);
    msg->request = NULL;
    if (msg->up && !msg->base.sends)
        msg->base.ep->cm->shutdown(msg->base.ep, 0);
    bridge_endpoint_close_objects(endpoint);
}

static int get_connection_address(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    const struct bridge_msg *msg = bridge_msg_of(endpoint);
    const struct lf_info *info = msg->request ? msg->request->info : bridge_domain_of(endpoint->domain)->info;
    size_t space = *length;

    /* Some providers know the address only when there is a connection. */
    if (msg->base.ep && bridge_endpoint_get_address(endpoint, address, length) == 0 &&
        bridge_address_check(endpoint->info, address, *length) == 0)
        return 0;
    *length = info->src_addrlen;
    if (!info->src_addr)
        return -EADDRNOTAVAIL;
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, info->src_addr, *length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- operations */

static int post_to_connection(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct bridge_msg *msg = bridge_msg_of(endpoint);
    struct bridge_block *block;
    int result;

    if (msg->base.ep) {
        notify_sleepers(endpoint);
        return bridge_operation_post(endpoint, peer, transfer);
    }
    /* The connection has ended: the core ends the operation. */
    if (!msg->request)
        return ofp_transfer_retain(endpoint, NULL, transfer) ? OFP_POST_PENDING : -ENOMEM;
    result = bridge_receive_defer(endpoint, transfer, &block);
    if (result)
        return result;
    block->next = NULL;
    if (!msg->early)
        msg->early_end = &msg->early;
    *msg->early_end = block;
    msg->early_end = &block->next;
    return OFP_POST_PENDING;
}

static int cancel_receive(struct ofp_endpoint *endpoint, struct ofp_pending *pending)
{
    const struct bridge_msg *msg = bridge_msg_of(endpoint);

    /* The block stays in `early` without its operation. */
    if (msg->request)
        ((struct bridge_block *)(uintptr_t)pending->provider_data[0])->pending = NULL;
    notify_sleepers(endpoint);
    return bridge_receive_cancel(endpoint, pending);
}

static int progress_connection(struct ofp_endpoint *endpoint)
{
    struct bridge_msg *msg = bridge_msg_of(endpoint);
    int events;

    if (!msg->base.cq)
        return 0;
    events = bridge_endpoint_progress(endpoint);
    if (__builtin_expect(msg->base.flushed, 0))
        end_flushed_connection(msg);
    if (__builtin_expect(msg->quits, 0))
        shut_down_if_drained(msg);
    return events;
}

static bool arm_connection(struct ofp_endpoint *endpoint)
{
    const struct bridge_domain *domain = bridge_domain_of(endpoint->domain);

    if (!bridge_endpoint_of(endpoint)->cq)
        return true;
    if (!domain->events_wake_all)
        return bridge_endpoint_arm(endpoint);
    domain->events->asleep = true;
    return bridge_queue_is_empty(endpoint);
}

const struct ofp_endpoint_ops bridge_msg_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct bridge_msg),
    .peer_size = sizeof(struct bridge_peer),
    .open = open_endpoint,
    .drain = drain_connection,
    .unsent = count_unsent,
    .close = close_endpoint,
    .name = get_connection_address,
    .connect = connect_endpoint,
    .accept = accept_request,
    .shutdown = shut_down_connection,
    .peer_down = disconnect_peer,
    .post = post_to_connection,
    .cancel = cancel_receive,
    .progress = progress_connection,
    .arm = arm_connection,
    .disarm = bridge_endpoint_disarm,
    .needs_flush = bridge_peer_needs_flush,
};
