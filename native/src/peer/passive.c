/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners of endpoints of type MSG: requests that wait for an answer, up to the backlog. */
#include "peer/passive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/service.h"
#include "completion/event_queue.h"
#include "object/domain.h"
#include "ofipy/connect.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"

#define DEFAULT_BACKLOG 1024

struct ofpi_passive {
    struct ofp_passive base; /* first: the provider's view */
    struct ofp_info info;    /* base.info */
    struct ofpi_domain *domain;
    struct ofp_list node; /* in domain->passives */
    struct ofp_eq *eq;
    struct ofp_list requests; /* unanswered, oldest first */
    uint32_t count, backlog;  /* length of `requests`, and its limit */
    bool listening, closing;
};

static int enter_passive(struct ofpi_passive *passive)
{
    int result = ofpi_domain_enter(passive->domain);

    if (!result && passive->closing) {
        ofpi_domain_leave(passive->domain);
        result = -ECANCELED;
    }
    return result;
}

static struct ofpi_passive *allocate_passive(struct ofpi_domain *domain, const struct ofp_passive_attr *attr)
{
    const struct ofp_passive_ops *ops = domain->base.provider->passive_ops;
    struct ofpi_passive *passive = calloc(1, sizeof(*passive) + ops->passive_size);

    if (!passive)
        return NULL;
    passive->base.ops = ops;
    passive->base.domain = &domain->base;
    passive->base.private = passive + 1;
    passive->base.id = ++domain->next_endpoint_id;
    passive->info = domain->info;
    passive->base.info = &passive->info;
    passive->domain = domain;
    passive->eq = attr->eq;
    passive->backlog = attr->backlog ? attr->backlog : DEFAULT_BACKLOG;
    ofp_list_init(&passive->requests);
    return passive;
}

int ofp_passive_open(struct ofp_domain *handle, const struct ofp_passive_attr *attr, struct ofp_passive **result,
                     char *text, size_t text_size)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_service service;
    struct ofpi_passive *passive;
    int error;

    text[0] = 0;
    if (!ofpi_domain_has_connections(domain)) {
        snprintf(text, text_size, "endpoints of this domain are not connected, so nobody can listen");
        return -EOPNOTSUPP;
    }
    if (!attr->eq || attr->eq->domain != domain) {
        snprintf(text, text_size, "a listener needs an event queue of its own domain");
        return -EINVAL;
    }
    if (attr->backlog > OFP_COUNT_MAX) {
        snprintf(text, text_size, "a backlog of %u; %d requests are the most", attr->backlog, OFP_COUNT_MAX);
        return -EINVAL;
    }
    error = ofpi_service_choose(&service, attr->service, text, text_size);
    if (error)
        return error;
    error = ofpi_domain_enter(domain);
    if (error)
        return error;
    passive = allocate_passive(domain, attr);
    error = passive ? passive->base.ops->open(&passive->base, service.text, text, text_size) : -ENOMEM;
    if (!error) {
        attr->eq->uses++;
        ofp_list_append(&domain->passives, &passive->node);
        *result = &passive->base;
    } else {
        if (passive)
            ofpi_service_describe_error(&service, error, text, text_size);
        free(passive);
        if (!text[0])
            snprintf(text, text_size, "cannot open a listener: %s", ofp_strerror(error));
    }
    ofpi_domain_leave(domain);
    return error;
}

int ofp_passive_listen(struct ofp_passive *handle)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    int result = enter_passive(passive);

    if (result)
        return result;
    if (!passive->listening) {
        result = handle->ops->listen(handle, passive->backlog);
        passive->listening = !result;
    }
    ofpi_domain_leave(passive->domain);
    return result;
}

int ofp_passive_address(struct ofp_passive *handle, void *address, size_t *length)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    int result = enter_passive(passive);

    if (result)
        return result;
    result = handle->ops->name(handle, address, length);
    ofpi_domain_leave(passive->domain);
    return result;
}

uint32_t ofp_passive_id(struct ofp_passive *passive) { return passive->id; }

/* --------------------------------------------------------------------------------------------------------- requests */

static struct ofpi_connection_request *find_passive_request(const struct ofpi_passive *passive, uint64_t handle)
{
    for (struct ofp_list *node = passive->requests.next; node != &passive->requests; node = node->next) {
        struct ofpi_connection_request *request = OFP_CONTAINER_OF(node, struct ofpi_connection_request, node);

        if (request->handle == handle)
            return request;
    }
    return NULL;
}

struct ofpi_connection_request *ofpi_connection_request_find(struct ofpi_domain *domain, uint64_t handle)
{
    struct ofpi_connection_request *request = NULL;

    for (struct ofp_list *node = domain->passives.next; node != &domain->passives && !request; node = node->next)
        request = find_passive_request(OFP_CONTAINER_OF(node, struct ofpi_passive, node), handle);
    return request;
}

void ofpi_connection_request_detach(struct ofpi_connection_request *request)
{
    OFPI_CHECK(ofp_list_linked(&request->node) && request->passive->count);
    ofp_list_remove(&request->node);
    request->passive->count--;
    request->passive = NULL;
}

int ofpi_connection_requested(struct ofp_passive *handle, uint64_t name, const void *address, size_t address_length,
                              const void *data, size_t length)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    struct ofp_event event = {.kind = OFP_EVENT_CONNREQ,
                              .endpoint = handle->id,
                              .peer = OFP_PEER_UNKNOWN,
                              .handle = passive->domain->last_request + 1,
                              .data_length = (uint32_t)length};
    struct ofpi_connection_request *request;

    /* A bound on what unknown_senders can have us keep. */
    if (passive->closing || passive->count >= passive->backlog)
        return -ENOBUFS;
    if (length > OFP_EVENT_DATA_MAX || address_length > OFP_ADDRESS_MAX)
        return -EMSGSIZE;
    request = calloc(1, sizeof(*request) + address_length);
    if (!request || ofpi_eq_write(passive->eq, &event, data) != 0) {
        free(request);
        return -ENOMEM;
    }
    /* The number is used up only now that the event which contains it is in the queue. */
    request->handle = ++passive->domain->last_request;
    request->request = name;
    request->passive = passive;
    request->address_length = address_length;
    memcpy(request->address, address, address_length);
    ofp_list_append(&passive->requests, &request->node);
    passive->count++;
    return 0;
}

int ofp_passive_requester(struct ofp_passive *handle, uint64_t request_handle, void *address, size_t *length)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    const struct ofpi_connection_request *request;
    size_t room = *length;
    int result = enter_passive(passive);

    if (result)
        return result;
    request = find_passive_request(passive, request_handle);
    if (request)
        *length = request->address_length;
    if (!request)
        result = -ENOENT;
    else if (room < *length)
        result = -OFP_ETOOSMALL;
    else
        memcpy(address, request->address, *length);
    ofpi_domain_leave(passive->domain);
    return result;
}

static int reject_passive_request(struct ofpi_passive *passive, struct ofpi_connection_request *request,
                                  const void *data, size_t length)
{
    int result = passive->base.ops->reject(&passive->base, request->request, data, length);

    ofpi_connection_request_detach(request);
    free(request);
    return result;
}

int ofp_passive_reject(struct ofp_passive *handle, uint64_t request_handle, const void *data, size_t length)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    struct ofpi_connection_request *request;
    int result;

    if (length > handle->info->max_private_data)
        return -EMSGSIZE;
    result = enter_passive(passive);
    if (result)
        return result;
    request = find_passive_request(passive, request_handle);
    result = request ? reject_passive_request(passive, request, data, length) : -ENOENT;
    ofpi_domain_leave(passive->domain);
    return result;
}

/* -------------------------------------------------------------------------------------------------------------- end */

int ofp_passive_retire(struct ofp_passive *handle)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;
    int result = enter_passive(passive);

    if (result)
        return result;
    passive->closing = true;
    /* Reject unanswered requests, so that the callers do not wait for a time-out. */
    while (!ofp_list_empty(&passive->requests))
        reject_passive_request(passive, OFP_CONTAINER_OF(passive->requests.next, struct ofpi_connection_request, node),
                               NULL, 0);
    handle->ops->close(handle);
    ofp_list_remove(&passive->node);
    passive->eq->uses--;
    ofpi_domain_leave(passive->domain);
    return 0;
}

void ofp_passive_free(struct ofp_passive *handle)
{
    struct ofpi_passive *passive = (struct ofpi_passive *)handle;

    /* Memory is freed apart from the close: threads that enter a call still check `closing`. */
    if (passive->closing)
        free(passive);
}

int ofp_passive_close(struct ofp_passive *passive)
{
    int result = ofp_passive_retire(passive);

    if (!result)
        ofp_passive_free(passive);
    return result;
}
