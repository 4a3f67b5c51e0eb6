/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners of connected endpoints. */
#include "endpoint/passive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "device/place.h"

struct verbs_passive {
    struct verbs_listener listener;
    struct ofp_passive *base;
    struct verbs_domain *domain;
    struct rdma_cm_id *id;
    union tcp_address address;
};

static struct verbs_passive *passive_of_base(struct ofp_passive *base) { return base->private; }

/* The requesting peer may disconnect before the request is answered. The core learns this when it accepts. */
static void requester_disconnected(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_request *request = OFP_CONTAINER_OF(listener, struct verbs_request, listener);

    (void)event;
    request->withdrawn = true;
}

static int report_request(struct verbs_passive *passive, const struct verbs_event *event)
{
    struct verbs_request *request = calloc(1, sizeof(*request));
    union tcp_address address;
    int result;

    if (!request)
        return -ENOMEM;
    request->listener.event = requester_disconnected;
    request->domain = passive->domain;
    request->id = event->id;
    request->responder_resources = event->responder_resources;
    request->initiator_depth = event->initiator_depth;
    event->id->context = &request->listener;
    verbs_id_get_peer_address(event->id, &address);
    result = verbs_core->connection_requested(passive->base, (uint64_t)(uintptr_t)request, &address,
                                              tcp_address_get_length(&address), event->data,
                                              verbs_event_get_private_length(event));
    if (result)
        free(request);
    return result;
}

static void handle_passive_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_passive *passive = OFP_CONTAINER_OF(listener, struct verbs_passive, listener);

    if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return;
    if (event->id->verbs == passive->domain->port->context && report_request(passive, event) == 0)
        return;
    verbs_id_reject(event->id, NULL, 0);
    verbs_id_close_later(passive->domain, event->id, NULL);
}

static int open_passive(struct ofp_passive *base, const char *service, char *text, size_t text_size)
{
    struct verbs_passive *passive = passive_of_base(base);

    passive->listener.event = handle_passive_event;
    passive->base = base;
    passive->domain = verbs_domain_of(base->domain);
    verbs_info_get_address(base->info, &passive->address);
    return verbs_id_open(passive->domain, &passive->listener, &passive->address, service, &passive->id, text,
                         text_size);
}

static int get_passive_address(struct ofp_passive *base, void *address, size_t *length)
{
    const struct verbs_passive *passive = passive_of_base(base);
    size_t space = *length;

    *length = tcp_address_get_length(&passive->address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &passive->address, *length);
    return 0;
}

static int listen_for_requests(struct ofp_passive *base, uint32_t backlog)
{
    /* The core limits unanswered requests; this backlog limits requests that ofipy has not read yet. */
    (void)backlog;
    return verbs_calls.listen(passive_of_base(base)->id, VERBS_BACKLOG) == 0 ? 0 : -errno;
}

static int reject_request(struct ofp_passive *base, uint64_t handle, const void *data, size_t length)
{
    struct verbs_request *request = (struct verbs_request *)(uintptr_t)handle;

    (void)base;
    verbs_id_reject(request->id, data, length);
    verbs_id_close_later(request->domain, request->id, NULL);
    free(request);
    return 0;
}

static void close_passive(struct ofp_passive *base)
{
    /* This does not block, and the port must be free on return. */
    verbs_calls.destroy_id(passive_of_base(base)->id);
}

const struct ofp_passive_ops verbs_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct verbs_passive),
    .open = open_passive,
    .name = get_passive_address,
    .listen = listen_for_requests,
    .reject = reject_request,
    .close = close_passive,
};
