/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of connected endpoints.
 *
 * libfabric rejects a request by the listener that it came by, so a listener that is closed stays, and refuses whoever comes,
 * until the requests are answered that endpoints were opened from.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passive.h"

#include "events.h"

struct bridge_listener {
    struct bridge_hearer hearer;
    struct bridge_events events;
    struct ofp_passive *base; /* NULL: closed */
    const struct bridge_domain *domain;
    struct lf_pep *pep;
    uint32_t requests; /* that hold it */
};

struct bridge_passive {
    struct bridge_listener *listener;
};

static struct bridge_listener *listener_of(const struct ofp_passive *base)
{
    return ((const struct bridge_passive *)base->private)->listener;
}

/* The listener before its events, which libfabric's has to outlive. */
static void end(struct bridge_listener *listener)
{
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
    if (--listener->requests == 0 && !listener->base)
        end(listener);
}

static void say_no(const struct bridge_listener *listener, struct lf_info *info, const void *data, size_t length)
{
    listener->pep->cm->reject(listener->pep, info->handle, data, length);
}

void bridge_request_refuse(struct bridge_request *request, const void *data, size_t length)
{
    say_no(request->listener, request->info, data, length);
    bridge_request_free(request);
}

static int take(struct bridge_listener *listener, const struct bridge_notice *notice)
{
    struct bridge_request *request = listener->base ? calloc(1, sizeof(*request)) : NULL;
    int result;

    if (!request)
        return -ENOMEM;
    *request = (struct bridge_request){.listener = listener, .info = notice->info};
    listener->requests++;
    result = bridge_core->connection_requested(listener->base, (uintptr_t)request, notice->info->dest_addr,
                                               notice->info->dest_addrlen, notice->data, notice->length);
    if (result) {
        listener->requests--;
        free(request);
    }
    return result;
}

static void heard(struct bridge_hearer *hearer, const struct bridge_notice *notice)
{
    struct bridge_listener *listener = OFP_CONTAINER_OF(hearer, struct bridge_listener, hearer);

    if (notice->error || notice->kind != LF_EVENT_REQUEST || take(listener, notice) == 0)
        return;
    say_no(listener, notice->info, NULL, 0);
    listener->domain->library->freeinfo(notice->info);
}

/* --------------------------------------------------------------------------------------------------------- listening */

static int open_objects(struct bridge_listener *listener, struct ofp_domain *domain, struct lf_info *info)
{
    struct lf_fabric *fabric = listener->domain->fabric;
    int error = bridge_events_open(&listener->events, domain);

    if (error)
        return error;
    error = fabric->ops->passive_ep(fabric, info, &listener->pep, &listener->hearer);
    if (error) {
        listener->pep = NULL;
        return -bridge_error(error);
    }
    return -bridge_error(listener->pep->fid.ops->bind(&listener->pep->fid, &listener->events.eq->fid, 0));
}

static int passive_open(struct ofp_passive *base, const char *service, char *text, size_t text_size)
{
    const struct bridge_domain *domain = bridge_domain_of(base->domain);
    struct bridge_passive *self = base->private;
    struct bridge_listener *listener;
    struct lf_info *info;
    int error = bridge_info_own(domain, base->info, service, true, &info, text, text_size);

    if (error)
        return error;
    listener = calloc(1, sizeof(*listener));
    if (!listener) {
        domain->library->freeinfo(info);
        return -ENOMEM;
    }
    listener->hearer.heard = heard;
    listener->base = base;
    listener->domain = domain;
    error = open_objects(listener, base->domain, info);
    domain->library->freeinfo(info);
    if (error) {
        snprintf(text, text_size, "%s cannot listen%s%s: %s", base->info->provider, service ? " at " : "",
                 service ? service : "", domain->library->strerror(-error));
        end(listener);
        return error;
    }
    self->listener = listener;
    return 0;
}

static int passive_name(struct ofp_passive *base, void *address, size_t *length)
{
    struct lf_pep *pep = listener_of(base)->pep;

    return -bridge_error(pep->cm->getname(&pep->fid, address, length));
}

static int passive_listen(struct ofp_passive *base, uint32_t backlog)
{
    struct lf_pep *pep = listener_of(base)->pep;

    /* The core counts those that are not answered. */
    (void)backlog;
    return -bridge_error(pep->cm->listen(pep));
}

static int passive_reject(struct ofp_passive *base, uint64_t handle, const void *data, size_t length)
{
    (void)base;
    bridge_request_refuse((struct bridge_request *)(uintptr_t)handle, data, length);
    return 0;
}

static void passive_close(struct ofp_passive *base)
{
    struct bridge_listener *listener = listener_of(base);

    listener->base = NULL;
    /* Refuse those that nobody has heard of yet. */
    bridge_events_read(&listener->events);
    if (!listener->requests)
        end(listener);
}

const struct ofp_passive_ops bridge_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct bridge_passive),
    .open = passive_open,
    .name = passive_name,
    .listen = passive_listen,
    .reject = passive_reject,
    .close = passive_close,
};
