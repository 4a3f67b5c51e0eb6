/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint/msg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "queue/complete.h"
#include "queue/owed.h"
#include "queue/pair.h"
#include "queue/send.h"

static void lose(struct verbs_endpoint *endpoint, int error, const char *text)
{
    if (endpoint->peer)
        ofp_peer_lost(endpoint->peer, error, false, text);
}

static void fail(struct verbs_endpoint *endpoint, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
    lose(endpoint, error, text);
}

static void up(struct verbs_endpoint *endpoint)
{
    verbs_core->timer_stop(endpoint->domain->base, &endpoint->deadline);
    endpoint->established = true;
    ofp_peer_up(endpoint->peer);
}

static struct rdma_conn_param parameters(const struct verbs_endpoint *endpoint, const uint8_t *bytes, uint8_t length)
{
    return verbs_parameters(endpoint->domain, endpoint->pair.qp, bytes, length, endpoint->responder_resources,
                            endpoint->initiator_depth);
}

/* ------------------------------------------------------------------------------------------------------- connecting */

static void too_late(struct ofp_timer *timer, uint64_t now)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct verbs_endpoint, deadline);
    char text[128];

    (void)now;
    snprintf(text, sizeof(text), "no answer within %" PRIu64 " s (OFIPY_CONNECT_TIMEOUT)",
             (uint64_t)(endpoint->domain->settings.connect_ns / VERBS_SECOND));
    lose(endpoint, ETIMEDOUT, text);
}

static void start_deadline(struct verbs_endpoint *endpoint)
{
    endpoint->deadline.expired = too_late;
    endpoint->deadline.deadline = verbs_core->now() + endpoint->domain->settings.connect_ns;
    verbs_core->timer_start(endpoint->domain->base, &endpoint->deadline);
}

int verbs_msg_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);
    union tcp_address address;

    if (peer->private_data_length > VERBS_PRIVATE_MAX)
        return -EINVAL;
    if (tcp_address_parse(peer->address, peer->address_length, &address) != 0)
        return -EINVAL;
    endpoint->peer = peer;
    endpoint->said_length = verbs_private_data(endpoint->said, peer->private_data, peer->private_data_length);
    endpoint->responder_resources = endpoint->domain->port->limits.responder_resources;
    endpoint->initiator_depth = endpoint->domain->port->limits.initiator_depth;
    if (verbs_calls.resolve_addr(endpoint->id, NULL, &address.any, VERBS_RESOLVE_MS) != 0) {
        int error = errno;

        snprintf(text, text_size, "the connection manager finds no way there: %s", strerror(error));
        return -error;
    }
    start_deadline(endpoint);
    return 0;
}

static void resolved(struct verbs_endpoint *endpoint)
{
    if (verbs_calls.resolve_route(endpoint->id, VERBS_RESOLVE_MS) != 0)
        fail(endpoint, "no route", errno);
}

static void ask(struct verbs_endpoint *endpoint)
{
    struct rdma_conn_param param = parameters(endpoint, endpoint->said, endpoint->said_length);

    if (verbs_calls.connect(endpoint->id, &param) != 0)
        fail(endpoint, "cannot ask for a connection", errno);
}

static void answered(struct verbs_endpoint *endpoint, const struct verbs_event *event)
{
    int result;

    /* As the manager tells them they are ours to take already. */
    verbs_limit(&endpoint->responder_resources, event->responder_resources);
    verbs_limit(&endpoint->initiator_depth, event->initiator_depth);
    result = verbs_pair_connect(endpoint);
    if (!result && verbs_calls.establish(endpoint->id) != 0)
        result = -errno;
    if (result) {
        fail(endpoint, "the queue pair cannot be connected", -result);
        return;
    }
    ofp_connection_answered(endpoint->peer, event->data, event->data_length);
    up(endpoint);
}

static void rejected(struct verbs_endpoint *endpoint, const struct verbs_event *event)
{
    char text[128];

    if (event->status == VERBS_REJECTED_BY_PROGRAM) {
        ofp_connection_answered(endpoint->peer, event->data, event->data_length);
        lose(endpoint, ECONNREFUSED, "the request was rejected");
    } else if (event->status == VERBS_REJECTED_NO_SERVICE) {
        lose(endpoint, ECONNREFUSED, "nobody listens there");
    } else {
        snprintf(text, sizeof(text), "the other side's connection manager refused, for its reason %d", event->status);
        lose(endpoint, ECONNREFUSED, text);
    }
}

/* -------------------------------------------------------------------------------------------------------- accepting */

int verbs_msg_accept(struct ofp_peer *peer, const void *data, size_t length)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);
    uint8_t bytes[1 + VERBS_PRIVATE_MAX];
    struct rdma_conn_param param;
    int result;

    endpoint->peer = peer;
    if (endpoint->gone)
        return -ECONNRESET;
    endpoint->unanswered = false;
    result = verbs_pair_connect(endpoint);
    if (result)
        return -ECONNRESET;
    param = parameters(endpoint, bytes, verbs_private_data(bytes, data, length));
    if (verbs_calls.accept(endpoint->id, &param) != 0)
        return -ECONNRESET;
    start_deadline(endpoint);
    return 0;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static void lose_who_left(struct verbs_endpoint *endpoint)
{
    if (!endpoint->peer)
        return;
    verbs_calls.disconnect(endpoint->id);
    lose(endpoint, ESHUTDOWN, "the other side shut down, or ended");
}

static void no_answer(struct ofp_timer *timer, uint64_t now)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct verbs_endpoint, deadline);

    (void)now;
    verbs_poll_all(endpoint);
    lose_who_left(endpoint);
}

static void ended_there(struct verbs_endpoint *endpoint)
{
    if (endpoint->left)
        return;
    /* Messages that the other side sent before it left have arrived before this event. */
    verbs_poll_all(endpoint);
    if (!endpoint->peer || !endpoint->established || !verbs_sends_are_awaited(endpoint)) {
        lose_who_left(endpoint);
        return;
    }
    endpoint->quitting = endpoint->peer;
    endpoint->left = true;
    endpoint->deadline.expired = no_answer;
    endpoint->deadline.deadline = verbs_core->now() + VERBS_ANSWER_NS;
    verbs_core->timer_start(endpoint->domain->base, &endpoint->deadline);
}

int verbs_msg_shutdown(struct ofp_peer *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);

    endpoint->quitting = peer;
    verbs_msg_quit(endpoint);
    return 0;
}

void verbs_msg_quit(struct verbs_endpoint *endpoint)
{
    struct ofp_peer *peer = endpoint->quitting;

    if (!peer)
        return;
    if (endpoint->left) {
        if (!verbs_sends_are_awaited(endpoint))
            lose_who_left(endpoint);
        return;
    }
    if (!verbs_sends_are_over(endpoint))
        return;
    endpoint->quitting = NULL;
    ofp_peer_lost(peer, 0, false, "shut down here");
}

void verbs_msg_peer_down(struct ofp_peer *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);

    endpoint->peer = NULL;
    endpoint->quitting = NULL;
    endpoint->left = false;
    verbs_core->timer_stop(endpoint->domain->base, &endpoint->deadline);
    if (!endpoint->id)
        return;
    if (endpoint->established)
        verbs_calls.disconnect(endpoint->id);
    endpoint->established = false;
    verbs_pair_close(endpoint);
    verbs_reap(endpoint->domain, endpoint->id, NULL);
    endpoint->id = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- events */

void verbs_msg_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(listener, struct verbs_endpoint, listener);

    /* Until `connect` or `accept` all that can happen is that who asked for a connection leaves. */
    if (!endpoint->peer) {
        endpoint->gone = true;
        return;
    }
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        resolved(endpoint);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        ask(endpoint);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        answered(endpoint, event);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        up(endpoint);
        break;
    case RDMA_CM_EVENT_REJECTED:
        /* Where the other side had accepted, and lost its queue pair before it heard that we know. */
        if (endpoint->established)
            ended_there(endpoint);
        else
            rejected(endpoint, event);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        ended_there(endpoint);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        lose(endpoint, ENODEV, "the device was removed");
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        fail(endpoint, "no way to the address", event->status < 0 ? -event->status : EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail(endpoint, "the other side does not answer", event->status < 0 ? -event->status : ETIMEDOUT);
        break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
        fail(endpoint, "the connection failed", event->status < 0 ? -event->status : ECONNABORTED);
        break;
    default:
        break;
    }
}
