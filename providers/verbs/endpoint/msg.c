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

static void mark_peer_lost(struct verbs_endpoint *endpoint, int error, const char *text)
{
    if (endpoint->peer)
        ofp_peer_lost(endpoint->peer, error, false, text);
}

static void fail_connection(struct verbs_endpoint *endpoint, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
    mark_peer_lost(endpoint, error, text);
}

static void report_peer_up(struct verbs_endpoint *endpoint)
{
    verbs_core->timer_stop(endpoint->domain->base, &endpoint->deadline);
    endpoint->established = true;
    ofp_peer_up(endpoint->peer);
}

static struct rdma_conn_param build_msg_parameters(const struct verbs_endpoint *endpoint, const uint8_t *bytes,
                                                   uint8_t length)
{
    return verbs_parameters_build(endpoint->domain, endpoint->pair.qp, bytes, length, endpoint->responder_resources,
                                  endpoint->initiator_depth);
}

/* ------------------------------------------------------------------------------------------------------- connecting */

static void connect_expired(struct ofp_timer *timer, uint64_t now)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct verbs_endpoint, deadline);
    char text[128];

    (void)now;
    snprintf(text, sizeof(text), "no answer within %" PRIu64 " s (OFIPY_CONNECT_TIMEOUT)",
             (uint64_t)(endpoint->domain->settings.connect_ns / VERBS_SECOND));
    mark_peer_lost(endpoint, ETIMEDOUT, text);
}

static void start_connect_timer(struct verbs_endpoint *endpoint)
{
    endpoint->deadline.expired = connect_expired;
    endpoint->deadline.deadline = verbs_core->now() + endpoint->domain->settings.connect_ns;
    verbs_core->timer_start(endpoint->domain->base, &endpoint->deadline);
}

int verbs_msg_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);
    union tcp_address address;

    OFP_CHECK(!endpoint->established && !endpoint->unanswered);
    if (peer->private_data_length > VERBS_PRIVATE_MAX)
        return -EINVAL;
    if (tcp_address_parse(peer->address, peer->address_length, &address) != 0)
        return -EINVAL;
    endpoint->peer = peer;
    endpoint->request_data_length =
        verbs_private_data_encode(endpoint->request_data, peer->private_data, peer->private_data_length);
    endpoint->responder_resources = endpoint->domain->port->limits.responder_resources;
    endpoint->initiator_depth = endpoint->domain->port->limits.initiator_depth;
    if (verbs_calls.resolve_addr(endpoint->id, NULL, &address.any, VERBS_RESOLVE_MS) != 0) {
        int error = errno;

        snprintf(text, text_size, "the connection manager finds no way there: %s", strerror(error));
        return -error;
    }
    start_connect_timer(endpoint);
    return 0;
}

static void address_resolved(struct verbs_endpoint *endpoint)
{
    if (verbs_calls.resolve_route(endpoint->id, VERBS_RESOLVE_MS) != 0)
        fail_connection(endpoint, "no route", errno);
}

static void request_connection(struct verbs_endpoint *endpoint)
{
    struct rdma_conn_param param =
        build_msg_parameters(endpoint, endpoint->request_data, endpoint->request_data_length);

    if (verbs_calls.connect(endpoint->id, &param) != 0)
        fail_connection(endpoint, "cannot ask for a connection", errno);
}

static void connection_answered(struct verbs_endpoint *endpoint, const struct verbs_event *event)
{
    int result;

    /* The values in the event are already from this side's view. */
    verbs_resources_set_limit(&endpoint->responder_resources, event->responder_resources);
    verbs_resources_set_limit(&endpoint->initiator_depth, event->initiator_depth);
    result = verbs_pair_connect(endpoint);
    if (!result && verbs_calls.establish(endpoint->id) != 0)
        result = -errno;
    if (result) {
        fail_connection(endpoint, "the queue pair cannot be connected", -result);
        return;
    }
    ofp_connection_answered(endpoint->peer, event->data, verbs_event_get_private_length(event));
    report_peer_up(endpoint);
}

static void connection_rejected(struct verbs_endpoint *endpoint, const struct verbs_event *event)
{
    char text[128];

    if (event->status == VERBS_REJECTED_BY_PROGRAM) {
        ofp_connection_answered(endpoint->peer, event->data, verbs_event_get_private_length(event));
        mark_peer_lost(endpoint, ECONNREFUSED, "the request was rejected");
    } else if (event->status == VERBS_REJECTED_NO_SERVICE) {
        mark_peer_lost(endpoint, ECONNREFUSED, "nobody listens there");
    } else {
        snprintf(text, sizeof(text), "the other side's connection manager refused, for its reason %d", event->status);
        mark_peer_lost(endpoint, ECONNREFUSED, text);
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
    if (endpoint->withdrawn)
        return -ECONNRESET;
    OFP_CHECK(endpoint->unanswered && !endpoint->established);
    endpoint->unanswered = false;
    result = verbs_pair_connect(endpoint);
    if (result)
        return -ECONNRESET;
    param = build_msg_parameters(endpoint, bytes, verbs_private_data_encode(bytes, data, length));
    if (verbs_calls.accept(endpoint->id, &param) != 0)
        return -ECONNRESET;
    start_connect_timer(endpoint);
    return 0;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static void disconnect_peer(struct verbs_endpoint *endpoint)
{
    if (!endpoint->peer)
        return;
    verbs_calls.disconnect(endpoint->id);
    mark_peer_lost(endpoint, ESHUTDOWN, "the other side shut down, or ended");
}

static void answer_expired(struct ofp_timer *timer, uint64_t now)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct verbs_endpoint, deadline);

    (void)now;
    verbs_pair_poll_all(endpoint);
    disconnect_peer(endpoint);
}

static void peer_disconnected(struct verbs_endpoint *endpoint)
{
    OFP_CHECK(!endpoint->ending_peer || endpoint->ending_peer == endpoint->peer);
    if (endpoint->left_by_peer)
        return;
    /* Messages that the peer sent before it disconnected have completed before this event. */
    verbs_pair_poll_all(endpoint);
    if (!endpoint->peer || !endpoint->established || !verbs_sends_are_awaited(endpoint)) {
        disconnect_peer(endpoint);
        return;
    }
    endpoint->ending_peer = endpoint->peer;
    endpoint->left_by_peer = true;
    endpoint->deadline.expired = answer_expired;
    endpoint->deadline.deadline = verbs_core->now() + VERBS_ANSWER_NS;
    verbs_core->timer_start(endpoint->domain->base, &endpoint->deadline);
}

int verbs_msg_shutdown(struct ofp_peer *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);

    endpoint->ending_peer = peer;
    verbs_msg_progress_shutdown(endpoint);
    return 0;
}

void verbs_msg_progress_shutdown(struct verbs_endpoint *endpoint)
{
    struct ofp_peer *peer = endpoint->ending_peer;

    if (!peer)
        return;
    if (endpoint->left_by_peer) {
        if (!verbs_sends_are_awaited(endpoint))
            disconnect_peer(endpoint);
        return;
    }
    if (!verbs_sends_drain(endpoint))
        return;
    endpoint->ending_peer = NULL;
    ofp_peer_lost(peer, 0, false, "shut down here");
}

void verbs_msg_peer_disconnect(struct ofp_peer *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(peer->endpoint);

    endpoint->peer = NULL;
    endpoint->ending_peer = NULL;
    endpoint->left_by_peer = false;
    verbs_core->timer_stop(endpoint->domain->base, &endpoint->deadline);
    if (!endpoint->id)
        return;
    if (endpoint->established)
        verbs_calls.disconnect(endpoint->id);
    endpoint->established = false;
    verbs_pair_close(endpoint);
    verbs_id_close_later(endpoint->domain, endpoint->id, NULL);
    endpoint->id = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- events */

void verbs_msg_handle_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_endpoint *endpoint = OFP_CONTAINER_OF(listener, struct verbs_endpoint, listener);

    /* Until `connect` or `accept` the only possible event is that the requesting peer disconnects. */
    if (!endpoint->peer) {
        endpoint->withdrawn = true;
        return;
    }
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        address_resolved(endpoint);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request_connection(endpoint);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        connection_answered(endpoint, event);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        report_peer_up(endpoint);
        break;
    case RDMA_CM_EVENT_REJECTED:
        /*
         * The peer had accepted, and lost its queue pair before its connection manager learned that the connection is
         * established.
         */
        if (endpoint->established)
            peer_disconnected(endpoint);
        else
            connection_rejected(endpoint, event);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        peer_disconnected(endpoint);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        mark_peer_lost(endpoint, ENODEV, "the device was removed");
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        fail_connection(endpoint, "no way to the address", event->status < 0 ? -event->status : EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail_connection(endpoint, "the other side does not answer", event->status < 0 ? -event->status : ETIMEDOUT);
        break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
        fail_connection(endpoint, "the connection failed", event->status < 0 ? -event->status : ECONNABORTED);
        break;
    default:
        break;
    }
}
