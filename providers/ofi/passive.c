/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of connected endpoints. libfabric rejects a request through its listener, so a closed listener stays open
 * at libfabric, and rejects all new requests, until the requests of opened endpoints are answered. Called by the core
 * and by connection events, under the domain's lock.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passive.h"

#include "events.h"

struct bridge_listener {
    struct bridge_event_handler handler;
    struct bridge_events events;
    struct ofp_passive *base; /* NULL: closed */
    const struct bridge_domain *domain;
    struct lf_pep *pep;
    uint32_t requests; /* requests that reference the listener */
};

struct bridge_passive {
    struct bridge_listener *listener;
};

static struct bridge_listener *listener_of_passive(const struct ofp_passive *base)
{
    return ((const struct bridge_passive *)base->private)->listener;
}

/* Close the listener before its events, which must outlive it. */
static void free_listener(struct bridge_listener *listener)
{
    OFP_CHECK(listener->requests == 0);
    if (listener->pep)
        listener->pep->fid.ops->close(&listener->pep->fid);
    bridge_events_close(&listener->events);
    free(listener);
}

/* ---------------------------------------------------------------------------------------------------------- requests */

void bridge_request_free(struct bridge_request *request)
{
    struct bridge_listener *listener = request->listener;

    listener->domain->library->freeinfo(request->info);
    free(request);
    OFP_CHECK(listener->requests > 0);
    if (--listener->requests == 0 && !listener->base)
        free_listener(listener);
}

static void reject_request(const struct bridge_listener *listener, struct lf_info *info, const void *data,
                           size_t length)
{
    listener->pep->cm->reject(listener->pep, info->handle, data, length);
}

void bridge_request_reject(struct bridge_request *request, const void *data, size_t length)
{
    reject_request(request->listener, request->info, data, length);
    bridge_request_free(request);
}

static int deliver_request(struct bridge_listener *listener, const struct bridge_connection_event *event)
{
    struct bridge_request *request = listener->base ? calloc(1, sizeof(*request)) : NULL;
    int result;

    if (!request)
        return -ENOMEM;
    *request = (struct bridge_request){.listener = listener, .info = event->info};
    listener->requests++;
    result = bridge_core->connection_requested(listener->base, (uintptr_t)request, event->info->dest_addr,
                                               event->info->dest_addrlen, event->data, event->length);
    if (result) {
        listener->requests--;
        free(request);
    }
    return result;
}

static void handle_listener_event(struct bridge_event_handler *handler, const struct bridge_connection_event *event)
{
    struct bridge_listener *listener = OFP_CONTAINER_OF(handler, struct bridge_listener, handler);

    if (event->error || event->kind != LF_EVENT_REQUEST || deliver_request(listener, event) == 0)
        return;
    reject_request(listener, event->info, NULL, 0);
    listener->domain->library->freeinfo(event->info);
}

/* --------------------------------------------------------------------------------------------------------- listening */

static int open_listener_objects(struct bridge_listener *listener, struct ofp_domain *domain, struct lf_info *info)
{
    struct lf_fabric *fabric = listener->domain->fabric;
    int error = bridge_events_open(&listener->events, domain);

    if (error)
        return error;
    error = fabric->ops->passive_ep(fabric, info, &listener->pep, &listener->handler);
    if (error) {
        listener->pep = NULL;
        return -bridge_error_convert(error);
    }
    return -bridge_error_convert(listener->pep->fid.ops->bind(&listener->pep->fid, &listener->events.eq->fid, 0));
}

static int open_passive(struct ofp_passive *base, const char *service, char *text, size_t text_size)
{
    const struct bridge_domain *domain = bridge_domain_of(base->domain);
    struct bridge_passive *self = base->private;
    struct bridge_listener *listener;
    struct lf_info *info;
    int error = bridge_info_find_own(domain, base->info, service, true, &info, text, text_size);

    if (error)
        return error;
    listener = calloc(1, sizeof(*listener));
    if (!listener) {
        domain->library->freeinfo(info);
        return -ENOMEM;
    }
    listener->handler.handle = handle_listener_event;
    listener->base = base;
    listener->domain = domain;
    error = open_listener_objects(listener, base->domain, info);
    domain->library->freeinfo(info);
    if (error) {
        snprintf(text, text_size, "%s cannot listen%s%s: %s", base->info->provider, service ? " at " : "",
                 service ? service : "", domain->library->strerror(-error));
        free_listener(listener);
        return error;
    }
    self->listener = listener;
    return 0;
}

static int get_passive_address(struct ofp_passive *base, void *address, size_t *length)
{
    struct lf_pep *pep = listener_of_passive(base)->pep;

    return -bridge_error_convert(pep->cm->getname(&pep->fid, address, length));
}

static int listen_passive(struct ofp_passive *base, uint32_t backlog)
{
    struct lf_pep *pep = listener_of_passive(base)->pep;

    /* The core counts unanswered requests. */
    (void)backlog;
    return -bridge_error_convert(pep->cm->listen(pep));
}

static int reject_passive_request(struct ofp_passive *base, uint64_t handle, const void *data, size_t length)
{
    (void)base;
    bridge_request_reject((struct bridge_request *)(uintptr_t)handle, data, length);
    return 0;
}

static void close_passive(struct ofp_passive *base)
{
    struct bridge_listener *listener = listener_of_passive(base);

    listener->base = NULL;
    /* Reject the requests that have not been read yet. */
    bridge_events_read(&listener->events);
    if (!listener->requests)
        free_listener(listener);
}

const struct ofp_passive_ops bridge_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct bridge_passive),
    .open = open_passive,
    .name = get_passive_address,
    .listen = listen_passive,
    .reject = reject_passive_request,
    .close = close_passive,
};
