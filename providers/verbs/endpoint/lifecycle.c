/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint/lifecycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "device/place.h"
#include "endpoint/msg.h"
#include "queue/complete.h"
#include "queue/owed.h"
#include "queue/pair.h"
#include "queue/receive.h"
#include "queue/send.h"

/* For receives of unknown size, which need memory that is registered for each. */
#define BOUNCE_SIZE (UINT64_C(2) << 20)

/* --------------------------------------------------------------------------------------------------------- opening */

/* The endpoint takes over the id of the request. Resources are limited by what the peer requested. */
static void acquire_request_id(struct verbs_endpoint *endpoint, struct verbs_request *request)
{
    const struct verbs_limits *limits = &endpoint->domain->port->limits;

    endpoint->id = request->id;
    endpoint->id->context = &endpoint->listener;
    endpoint->unanswered = true;
    endpoint->withdrawn = request->withdrawn;
    endpoint->responder_resources = limits->responder_resources;
    endpoint->initiator_depth = limits->initiator_depth;
    verbs_resources_set_limit(&endpoint->responder_resources, request->responder_resources);
    verbs_resources_set_limit(&endpoint->initiator_depth, request->initiator_depth);
}

static int open_from_request(struct verbs_endpoint *endpoint, struct verbs_request *request, char *text,
                             size_t text_size)
{
    int result;

    acquire_request_id(endpoint, request);
    result = verbs_pair_open(endpoint, text, text_size);
    if (result) {
        /* The id stays with the request. */
        endpoint->id->context = &request->listener;
        endpoint->id = NULL;
        return result;
    }
    free(request);
    return 0;
}

static int open_bound_endpoint(struct verbs_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    int result = verbs_id_open(endpoint->domain, &endpoint->listener, &endpoint->address, service, &endpoint->id, text,
                               text_size);

    if (result)
        return result;
    verbs_id_set_traffic_class(endpoint->id, endpoint->base);
    result = verbs_pair_open(endpoint, text, text_size);
    if (result) {
        verbs_calls.destroy_id(endpoint->id);
        endpoint->id = NULL;
    }
    return result;
}

int verbs_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_request *request = (struct verbs_request *)(uintptr_t)base->request;

    endpoint->listener.event = verbs_msg_handle_event;
    endpoint->base = base;
    endpoint->domain = verbs_domain_of(base->domain);
    verbs_info_get_address(base->info, &endpoint->address);
    if (!base->bounce_size)
        base->bounce_size = BOUNCE_SIZE;
    return request ? open_from_request(endpoint, request, text, text_size)
                   : open_bound_endpoint(endpoint, service, text, text_size);
}

int verbs_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length)
{
    const struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    size_t space = *length;

    *length = tcp_address_get_length(&endpoint->address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &endpoint->address, *length);
    return 0;
}

/* -------------------------------------------------------------------------------------------------------- progress */

int verbs_endpoint_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);

    if (ofp_operation_is(transfer->op->op, OFP_RECEIVES))
        return verbs_receive_post(endpoint, transfer);
    return verbs_send_post(endpoint, peer, transfer);
}

void verbs_endpoint_flush(struct ofp_endpoint *base) { verbs_sends_flush(verbs_endpoint_of(base)); }

int verbs_endpoint_progress(struct ofp_endpoint *base)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    int events = verbs_pair_poll(endpoint);

    verbs_sends_flush(endpoint);
    if (VERBS_UNLIKELY(endpoint->pair.long_send != NULL))
        events += verbs_sends_resume(endpoint);
    if (VERBS_UNLIKELY(endpoint->ending_peer != NULL))
        verbs_msg_progress_shutdown(endpoint);
    return events;
}

bool verbs_endpoint_arm(struct ofp_endpoint *base)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);

    verbs_sends_flush(endpoint);
    return verbs_pair_arm(endpoint);
}

/* An armed completion queue notifies once, which costs one poll. */
void verbs_endpoint_disarm(struct ofp_endpoint *base) { (void)base; }

/* --------------------------------------------------------------------------------------------------------- closing */

int verbs_endpoint_drain(struct ofp_endpoint *base)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);

    return !endpoint->peer || !endpoint->established || verbs_sends_drain(endpoint) ? 0 : -EAGAIN;
}

uint64_t verbs_peer_count_unsent(const struct ofp_peer *peer)
{
    return verbs_sends_count_unsent(verbs_endpoint_of(peer->endpoint));
}

void verbs_endpoint_close(struct ofp_endpoint *base, uint64_t deadline)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);

    (void)deadline;
    verbs_core->timer_stop(base->domain, &endpoint->deadline);
    if (endpoint->id) {
        if (endpoint->unanswered)
            verbs_id_reject(endpoint->id, NULL, 0);
        if (endpoint->established)
            verbs_calls.disconnect(endpoint->id);
        verbs_pair_close(endpoint);
        verbs_id_close_later(endpoint->domain, endpoint->id, NULL);
        endpoint->id = NULL;
    }
    verbs_receives_free(endpoint);
}
