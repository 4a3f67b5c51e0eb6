/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of an endpoint with hooks: a copy of the plain services, in which those entries are wrapped whose event
 * at least one hook handles.
 */
#include "hook/hooks_services.h"

#include "hook/hooked.h"
#include "object/endpoint.h"
#include "ofipy/types.h"
#include "provider/services.h"

static struct ofpi_hooks *hooks_of_endpoint(struct ofp_endpoint *endpoint)
{
    return ((struct ofpi_endpoint *)endpoint)->hooks;
}

/* Report a message that the core has accepted. A refused message arrives again, or in another form. */
static void report_arrival(struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_hook_arrival how)
{
    struct ofpi_hooks *hooks = hooks_of_endpoint(endpoint);

    for (uint32_t i = hooks->open; i-- > 0;)
        if (hooks->each[i].hook->arrived)
            hooks->each[i].hook->arrived(&hooks->each[i], message, how);
}

static int report_whole_message(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload)
{
    int result = ofpi_services.message_arrived(endpoint, message, payload);

    if (!result)
        report_arrival(endpoint, message, OFP_ARRIVED_WHOLE);
    return result;
}

static int report_begun_message(struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_room room,
                                struct ofp_receive **receive)
{
    int result = ofpi_services.message_begin(endpoint, message, room, receive);

    if (!result)
        report_arrival(endpoint, message, OFP_ARRIVED_BEGUN);
    return result;
}

static int report_announced_message(struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    int result = ofpi_services.message_announced(endpoint, message);

    if (!result)
        report_arrival(endpoint, message, OFP_ARRIVED_ANNOUNCED);
    return result;
}

static void report_receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    struct ofpi_hooks *hooks = hooks_of_endpoint(receive->endpoint);

    for (uint32_t i = hooks->open; i-- > 0;)
        if (hooks->each[i].hook->written)
            hooks->each[i].hook->written(&hooks->each[i], receive, offset, length);
    ofpi_services.receive_write(receive, offset, data, length);
}

static void report_payload_move(struct ofp_receive *receive, enum ofp_moved how)
{
    struct ofpi_hooks *hooks = hooks_of_endpoint(receive->endpoint);

    for (uint32_t i = hooks->open; i-- > 0;)
        if (hooks->each[i].hook->moved)
            hooks->each[i].hook->moved(&hooks->each[i], receive, how);
    ofpi_services.payload_moved(receive, how);
}

static void report_event_to_hooks(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region,
                                  uint64_t flags, uint64_t data, uint64_t length)
{
    struct ofpi_hooks *hooks = hooks_of_endpoint(endpoint);

    for (uint32_t i = hooks->open; i-- > 0;)
        if (hooks->each[i].hook->remote)
            hooks->each[i].hook->remote(&hooks->each[i], peer, flags, length);
    ofpi_services.remote_event(endpoint, peer, region, flags, data, length);
}

void ofpi_hooks_services_bind(struct ofpi_hooks *hooks)
{
    struct ofp_services *services = &hooks->services;
    struct ofp_endpoint *endpoint = &hooks->endpoint->base;

    *services = ofpi_services;
    for (uint32_t i = 0; i < hooks->list->count; i++) {
        const struct ofp_hook *hook = hooks->list->uses[i].hook;

        if (hook->arrived) {
            services->message_arrived = report_whole_message;
            services->message_begin = report_begun_message;
            services->message_announced = report_announced_message;
        }
        if (hook->moved)
            services->payload_moved = report_payload_move;
        if (hook->written)
            services->receive_write = report_receive_write;
        if (!hook->remote)
            continue;
        services->remote_event = report_event_to_hooks;
        /* Transports report remote events only on request. */
        if (endpoint->info->caps & OFP_CAP_RMA_EVENT)
            endpoint->remote_events = true;
    }
    endpoint->services = services;
}
