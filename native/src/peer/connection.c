/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of endpoints of type MSG: ofp_connect and ofp_accept, the outcome, and ofp_shutdown. */
#include "peer/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/provider_address.h"
#include "base/reason.h"
#include "completion/event_queue.h"
#include "completion/request_finish.h"
#include "completion/request_slots.h"
#include "match/receive_context.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "ofipy/connect.h"
#include "ofipy/ofp.h"
#include "peer/passive.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "progress/progress.h"
#include "progress/wait.h"

/* ---------------------------------------------------------------------------------------------- opening and closing */

int ofpi_connection_open(struct ofpi_endpoint *endpoint, uint64_t handle)
{
    struct ofpi_connection_request *request = NULL;
    struct ofpi_connection *connection;

    if (!ofpi_domain_has_connections(endpoint->domain))
        return handle ? -EOPNOTSUPP : 0;
    if (handle) {
        request = ofpi_connection_request_find(endpoint->domain, handle);
        if (!request)
            return -ENOENT;
    }
    connection = calloc(1, sizeof(*connection));
    if (!connection)
        return -ENOMEM;
    connection->request = request;
    ofp_list_init(&connection->waiting);
    ofp_list_init(&connection->leaving);
    endpoint->connection = connection;
    endpoint->base.request = request ? request->request : 0;
    return 0;
}

void ofpi_connection_opened(struct ofpi_endpoint *endpoint)
{
    if (endpoint->connection && endpoint->connection->request)
        ofpi_connection_request_detach(endpoint->connection->request);
}

void ofpi_connection_free(struct ofpi_endpoint *endpoint)
{
    struct ofpi_connection *connection = endpoint->connection;

    if (!connection)
        return;
    /* If opening the endpoint failed, the listener still owns the request. */
    if (connection->request && !ofp_list_linked(&connection->request->node))
        free(connection->request);
    free(connection->data);
    free(connection->text);
    free(connection);
    endpoint->connection = NULL;
}

/* -EOPNOTSUPP: the endpoint is not of type MSG. */
static int enter_connection(struct ofpi_endpoint *endpoint)
{
    int result = ofpi_endpoint_enter(endpoint);

    if (!result && !endpoint->connection) {
        ofpi_domain_leave(endpoint->domain);
        result = -EOPNOTSUPP;
    }
    return result;
}

/* ------------------------------------------------------------------------------------------------- connect and accept */

/* Create the peer of a new connection. */
static int create_connection_peer(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    struct ofpi_connection *connection = endpoint->connection;

    /* An endpoint has one connection in its life: the peer stays here after the connection has ended. */
    if (connection->peer)
        return -EISCONN;
    connection->peer = ofpi_only_peer_create(endpoint, address, length);
    if (!connection->peer)
        return -ENOMEM;
    ofpi_peer_mark_connecting(&connection->peer->base);
    return 0;
}

/*
 * The provider may have reported the loss within the call. The state is LOST then, and the loss is not reported again.
 */
static void fail_connecting_peer(struct ofp_peer *peer, int result, const char *text)
{
    if (result && peer->state == OFP_PEER_CONNECTING)
        ofpi_peer_lost(peer, -result, false, text && text[0] ? text : NULL);
}

static int connect_endpoint(struct ofpi_endpoint *endpoint, const void *address, size_t address_length,
                            const void *data, size_t length)
{
    char text[OFP_TEXT_MAX] = "";
    struct ofp_peer *peer;
    int result;

    /* The endpoint was opened from a connection request and can only accept it. */
    if (endpoint->connection->request)
        return -EINVAL;
    result = create_connection_peer(endpoint, address, address_length);
    if (result)
        return result;
    peer = &endpoint->connection->peer->base;
    peer->private_data = data;
    peer->private_data_length = length;
    result = endpoint->base.ops->connect(peer, text, sizeof(text));
    /* The private data is the caller's memory, valid during this call only. */
    peer->private_data = NULL;
    peer->private_data_length = 0;
    /* The event and the request report the outcome, also if the connection failed within the call. */
    fail_connecting_peer(peer, result, text);
    return 0;
}

int ofp_connect(struct ofp_endpoint *handle, const void *address, size_t address_length, const void *data,
                size_t length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_address_check(handle->domain, address, address_length);

    if (result)
        return result;
    if (length > handle->info->max_private_data)
        return -EMSGSIZE;
    result = enter_connection(endpoint);
    if (result)
        return result;
    result = connect_endpoint(endpoint, address, address_length, data, length);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

static int accept_request(struct ofpi_endpoint *endpoint, const void *data, size_t length)
{
    struct ofpi_connection *connection = endpoint->connection;
    struct ofpi_connection_request *request = connection->request;
    int result;

    if (!request)
        return connection->peer ? -EISCONN : -EINVAL;
    result = create_connection_peer(endpoint, request->address, request->address_length);
    if (result)
        return result;
    connection->accepted = true;
    result = endpoint->base.ops->accept(&connection->peer->base, data, length);
    /* The request is answered even if `accept` failed, so a second answer is impossible. */
    endpoint->base.request = 0;
    connection->request = NULL;
    free(request);
    fail_connecting_peer(&connection->peer->base, result, NULL);
    return 0;
}

int ofp_accept(struct ofp_endpoint *handle, const void *data, size_t length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result;

    if (length > handle->info->max_private_data)
        return -EMSGSIZE;
    result = enter_connection(endpoint);
    if (result)
        return result;
    result = accept_request(endpoint, data, length);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

/* ---------------------------------------------------------------------------------------------------------- outcome */

void ofpi_connection_answered(struct ofp_peer *peer, const void *data, size_t length)
{
    struct ofpi_connection *connection = ((struct ofpi_endpoint *)peer->endpoint)->connection;

    if (length > OFP_EVENT_DATA_MAX)
        length = OFP_EVENT_DATA_MAX;
    if (connection->data || !length)
        return;
    connection->data = malloc(length);
    if (!connection->data) {
        ofpi_log_write(OFP_LOG_ERROR, "core", "out of memory: what the other side answered is lost");
        return;
    }
    memcpy(connection->data, data, length);
    connection->data_length = (uint32_t)length;
}

static void write_connection_event(struct ofpi_endpoint *endpoint, uint32_t kind, int error, bool with_data)
{
    const struct ofpi_connection *connection = endpoint->connection;
    struct ofp_event event = {.kind = kind,
                              .endpoint = endpoint->base.id,
                              .peer = OFP_PEER_UNKNOWN,
                              .error = error,
                              .provider_error = error && connection->text ? ofpi_reason_store(connection->text) : 0,
                              .data_length = with_data ? connection->data_length : 0};

    if (endpoint->eq && ofpi_eq_write(endpoint->eq, &event, connection->data) != 0)
        ofpi_log_write(OFP_LOG_ERROR, "core", "event queue: out of memory, an event of endpoint %u is lost",
                       event.endpoint);
}

static void complete_user_request(struct ofpi_endpoint *endpoint, struct ofp_request *request, int error)
{
    struct ofp_completion completion = {.length = endpoint->connection->data_length,
                                        .source = OFP_PEER_UNKNOWN,
                                        .endpoint = endpoint->base.id,
                                        .error = error};

    ofpi_request_finish(request, &completion);
}

static void complete_user_requests(struct ofpi_endpoint *endpoint, struct ofp_list *requests, int error)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofp_list *node;

    while ((node = ofp_list_pop(requests)))
        complete_user_request(endpoint, OFP_CONTAINER_OF(node, struct ofp_request, node), error);
    if (domain->leader || domain->followers)
        ofpi_domain_wake(domain);
}

bool ofpi_connection_is_ending(const struct ofpi_endpoint *endpoint) { return endpoint->connection->ending; }

void ofpi_connection_established(struct ofpi_endpoint *endpoint)
{
    OFPI_CHECK(!endpoint->connection->made && !endpoint->connection->error);
    endpoint->connection->made = true;
    write_connection_event(endpoint, OFP_EVENT_CONNECTED, 0, true);
    complete_user_requests(endpoint, &endpoint->connection->waiting, 0);
}

/* Both sides shut the connection down and this side had nothing left to send, so their order does not matter. */
static bool is_end_mutual(const struct ofpi_connection *connection, int reason)
{
    return reason == ESHUTDOWN && !connection->peer->sending && ofp_list_empty(&connection->peer->backlog);
}

void ofpi_connection_lost(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text)
{
    struct ofpi_connection *connection = endpoint->connection;

    OFPI_CHECK(!connection->error && (connection->made || !was_up));
    /* Progress has nothing left to do for the shutdown. */
    endpoint->ending = false;
    connection->error = error ? error : ESHUTDOWN;
    if (endpoint->closing)
        connection->end_error = ECANCELED;
    else
        connection->end_error = is_end_mutual(connection, reason) ? 0 : reason;
    connection->text = text ? strdup(text) : NULL;
    ofpi_log_write(was_up || error == ECANCELED ? OFP_LOG_INFO : OFP_LOG_WARNING, endpoint->info.provider,
                   "endpoint %u: %s: %s", endpoint->base.id, was_up ? "connection lost" : "not connected",
                   text ? text : ofp_strerror(connection->error));
    /* No event for a connection that this side ended itself. */
    if (connection->error != ECANCELED && was_up)
        write_connection_event(endpoint, OFP_EVENT_SHUTDOWN, connection->error == ESHUTDOWN ? 0 : connection->error,
                               false);
    else if (connection->error != ECANCELED)
        write_connection_event(endpoint, OFP_EVENT_CONNECTED, connection->error, true);
    /* Empty if the connection was up: ofpi_connection_established completed these requests. */
    complete_user_requests(endpoint, &connection->waiting, connection->error);
    complete_user_requests(endpoint, &connection->leaving, connection->end_error);
}

/* Create a request and add it to `requests`. With `over` the request completes at once. */
static ofp_request_t create_user_request(struct ofpi_endpoint *endpoint, struct ofp_list *requests, bool over,
                                         int error)
{
    struct ofp_request *request = ofpi_request_allocate(endpoint);

    if (!request)
        return -ENOMEM;
    if (over)
        complete_user_request(endpoint, request, error);
    else
        ofp_list_append(requests, &request->node);
    return ofpi_handle_of_request(request);
}

ofp_request_t ofp_connection_request(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_connection *connection;
    ofp_request_t result = enter_connection(endpoint);

    if (result)
        return result;
    connection = endpoint->connection;
    result = -ENOTCONN;
    /* The request reports the outcome of the attempt, not a later end of the connection. */
    if (connection->peer)
        result =
            create_user_request(endpoint, &connection->waiting, connection->peer->base.state != OFP_PEER_CONNECTING,
                                connection->made ? 0 : connection->error);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

ofp_request_t ofp_shutdown_request(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_connection *connection;
    ofp_request_t result = enter_connection(endpoint);

    if (result)
        return result;
    connection = endpoint->connection;
    result = -ENOTCONN;
    if (connection->ending)
        result = create_user_request(endpoint, &connection->leaving, connection->error != 0, connection->end_error);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

static int get_connection_status(const struct ofpi_connection *connection, char *text, size_t text_size)
{
    if (!connection->peer)
        return -ENOTCONN;
    if (connection->text)
        snprintf(text, text_size, "%s", connection->text);
    if (connection->error)
        return -connection->error;
    return connection->peer->base.state == OFP_PEER_CONNECTING ? -EINPROGRESS : 0;
}

int ofp_connection_status(struct ofp_endpoint *handle, void *data, size_t *length, char *text, size_t text_size)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofpi_connection *connection;
    size_t room = *length;
    int result = enter_connection(endpoint);

    text[0] = 0;
    *length = 0;
    if (result)
        return result;
    connection = endpoint->connection;
    *length = connection->data_length;
    /* length is the size that the data needs. */
    if (room < *length)
        result = -OFP_ETOOSMALL;
    else if (*length)
        memcpy(data, connection->data, *length);
    if (!result)
        result = get_connection_status(connection, text, text_size);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_peer_address(struct ofp_endpoint *handle, void *address, size_t *length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofpi_connection *connection;
    const void *stored = NULL;
    size_t room = *length;
    int result = enter_connection(endpoint);

    if (result)
        return result;
    connection = endpoint->connection;
    if (connection->peer) {
        stored = connection->peer->base.address;
        *length = connection->peer->base.address_length;
    } else if (connection->request) {
        stored = connection->request->address;
        *length = connection->request->address_length;
    }
    if (!stored)
        result = -ENOTCONN;
    else if (room < *length)
        result = -OFP_ETOOSMALL;
    else
        memcpy(address, stored, *length);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

bool ofpi_connection_can_post(const struct ofpi_connection *connection)
{
    if (!connection->peer || connection->ending)
        return false;
    return connection->peer->base.state == OFP_PEER_CONNECTING || connection->peer->base.state == OFP_PEER_UP;
}

void ofpi_connection_end_receives(struct ofpi_endpoint *endpoint)
{
    int error = endpoint->connection->error;

    if (endpoint->info.offloads_matching)
        ofpi_receives_end(endpoint, &endpoint->sourceless, error, 0);
    else
        /* A shared receive context has no receives of this endpoint, only its own. */
        ofpi_receive_context_end(endpoint->receive_context, &endpoint->base, error);
}

/* -------------------------------------------------------------------------------------------------------------- end */

void ofpi_connection_shutdown(struct ofpi_endpoint *endpoint)
{
    struct ofpi_peer *peer = endpoint->connection->peer;
    int result = 0;

    /* Operations posted before the shutdown are sent first. Progress calls this function again. */
    if (!ofp_list_empty(&peer->backlog))
        return;
    /* The other side must receive the acceptance first. A shutdown before it would look like a rejection. */
    if (peer->base.state == OFP_PEER_CONNECTING)
        return;
    endpoint->ending = false;
    if (endpoint->base.ops->shutdown)
        result = endpoint->base.ops->shutdown(&peer->base);
    if ((result || !endpoint->base.ops->shutdown) && peer->base.state == OFP_PEER_UP)
        ofpi_peer_lost(&peer->base, ECANCELED, false, "shut down here");
}

/* The other side shut the connection down before this side did. */
static bool is_ended_by_peer(const struct ofpi_connection *connection)
{
    return connection->peer && !connection->ending && connection->error == ESHUTDOWN;
}

int ofp_shutdown(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_connection *connection;
    int result = enter_connection(endpoint);

    if (result)
        return result;
    connection = endpoint->connection;
    /* Nothing can be sent any more, so the request of the shutdown completes at once. */
    if (is_ended_by_peer(connection)) {
        connection->ending = true;
    } else if (!ofpi_connection_can_post(connection)) {
        result = -ENOTCONN;
    } else {
        connection->ending = true;
        if (connection->peer->base.state == OFP_PEER_CONNECTING && !connection->accepted) {
            /*
             * Without an error: this side ended the attempt, so it counts as cancelled and the request of the shutdown
             * succeeds.
             */
            ofpi_peer_lost(&connection->peer->base, 0, false, "shut down here");
        } else {
            endpoint->ending = true;
            ofpi_connection_shutdown(endpoint);
        }
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}
