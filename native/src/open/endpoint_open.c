/* SPDX-License-Identifier: BSD-3-Clause */
/* Open and close endpoints, and query their addresses. */
#include "open/endpoint_open.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/page.h"
#include "base/param.h"
#include "base/service.h"
#include "collective/group_close.h"
#include "completion/complete.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "completion/event_queue.h"
#include "hook/hooked.h"
#include "match/receive_context.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/vector.h"
#include "ofipy/ofp.h"
#include "open/alias.h"
#include "operation/deferred.h"
#include "peer/bounce.h"
#include "peer/connection.h"
#include "peer/forget.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "peer/roster.h"
#include "peer/unsent.h"
#include "progress/levels.h"
#include "progress/progress.h"
#include "progress/wait.h"
#include "provider/provider_tables.h"
#include "provider/services.h"

/* Whether the endpoint reports or counts reads and writes of its peers. */
static bool needs_remote_events(const struct ofp_endpoint_attr *attr)
{
    return attr->remote_events || attr->counters[OFP_COUNTER_REMOTE_READ] || attr->counters[OFP_COUNTER_REMOTE_WRITE];
}

static struct ofpi_endpoint *create_endpoint(struct ofpi_domain *domain, const struct ofp_endpoint_attr *attr)
{
    const struct ofp_endpoint_ops *ops = ofpi_endpoint_ops_get(domain->base.provider, &domain->info);
    struct ofpi_endpoint *endpoint = calloc(1, sizeof(*endpoint) + ops->endpoint_size);

    if (!endpoint)
        return NULL;
    endpoint->base.ops = ops;
    endpoint->base.services = &ofpi_services;
    endpoint->base.domain = &domain->base;
    endpoint->base.private = endpoint + 1;
    endpoint->base.id = ++domain->next_endpoint_id;
    endpoint->info = domain->info;
    endpoint->base.info = &endpoint->info;
    endpoint->domain = domain;
    endpoint->behind = endpoint;
    endpoint->counts = ofpi_counts_open(&endpoint->info);
    endpoint->tx_cq = attr->tx_cq;
    endpoint->rx_cq = attr->rx_cq;
    endpoint->av = attr->av;
    endpoint->eq = attr->eq;
    endpoint->tx_flags = attr->tx_flags;
    endpoint->rx_flags = attr->rx_flags;
    endpoint->tx_size = attr->tx_size ? attr->tx_size : endpoint->info.tx_size;
    endpoint->selective_completion = attr->selective_completion;
    endpoint->remote_events = attr->remote_events;
    endpoint->base.remote_events = needs_remote_events(attr);
    endpoint->base.min_multi_recv = attr->min_multi_recv ? attr->min_multi_recv : OFP_MIN_MULTI_RECV;
    endpoint->base.bounce_size = ofpi_param_get_size("BOUNCE_SIZE");
    endpoint->base.traffic_class = attr->traffic_class;
    if (!endpoint->counts || getrandom(endpoint->base.identity, OFP_IDENTITY_SIZE, 0) != OFP_IDENTITY_SIZE) {
        ofpi_counts_close(endpoint->counts);
        free(endpoint);
        return NULL;
    }
    ofp_list_init(&endpoint->backlogged);
    ofp_list_init(&endpoint->removed);
    ofp_list_init(&endpoint->idle_uninserted);
    endpoint->forgetting.expired = ofpi_uninserted_peers_free;
    ofp_list_init(&endpoint->sourceless);
    return endpoint;
}

int ofpi_endpoint_open_context(struct ofpi_endpoint *endpoint, uint64_t unexpected_limit, uint64_t min_multi_recv)
{
    struct ofpi_receive_context_attr context = {
        .unexpected_limit = unexpected_limit ? unexpected_limit : ofpi_param_get_size("UNEXPECTED_SIZE"),
        .announcement_limit = ofpi_param_get_size("ANNOUNCEMENTS"),
        .min_multi_recv = min_multi_recv ? min_multi_recv : OFP_MIN_MULTI_RECV,
        .complete = ofpi_message_complete,
        .entries = &endpoint->domain->entries,
        .domain = endpoint->domain,
        .start_timer = ofpi_timer_start,
    };

    endpoint->base.unexpected_limit = context.unexpected_limit;
    return ofpi_receive_context_open(&context, &endpoint->receive_context);
}

static int open_receive_context(struct ofpi_endpoint *endpoint, const struct ofp_endpoint_attr *attr)
{
    struct ofpi_endpoint *shared = (struct ofpi_endpoint *)attr->rx_context;

    if (shared && endpoint->info.offloads_matching)
        return -EOPNOTSUPP;
    if (!shared)
        return ofpi_endpoint_open_context(endpoint, attr->unexpected_limit, attr->min_multi_recv);
    if (shared->closing)
        return -ECANCELED;
    if (shared->domain != endpoint->domain || shared->av != attr->av || !ofpi_endpoint_is_receive_only(shared))
        return -EINVAL;
    endpoint->shared = shared;
    endpoint->receive_context = shared->receive_context;
    endpoint->base.unexpected_limit = shared->base.unexpected_limit;
    shared->sharers++;
    return 0;
}

static void release_endpoint(struct ofpi_endpoint *endpoint)
{
    OFPI_CHECK(!endpoint->in_flight && !endpoint->backlog_count && !ofp_list_linked(&endpoint->flush_node));
    if (endpoint->shared)
        endpoint->shared->sharers--;
    else if (endpoint->receive_context)
        ofpi_receive_context_close(endpoint->receive_context);
    endpoint->shared = NULL;
    endpoint->receive_context = NULL;
    ofpi_follower_free(endpoint);
    ofpi_peers_free(endpoint);
    ofpi_counts_close(endpoint->counts);
    ofpi_hooks_close(endpoint);
    ofpi_bounce_close(endpoint);
    ofpi_connection_free(endpoint);
}

/* 0, or a negative errno with a text that says which attribute is refused. */
static int check_endpoint_attributes(const struct ofpi_domain *domain, const struct ofp_endpoint_attr *attr, char *text,
                                     size_t text_size)
{
    if (attr->tx_flags & ~(uint64_t)OFPI_TX_DEFAULTS || attr->rx_flags & ~(uint64_t)OFPI_RX_DEFAULTS) {
        snprintf(
            text, text_size,
            "flags that cannot be the default of every operation: of sends inject, completion and the levels can, of "
            "receives completion and multi_recv");
        return -EINVAL;
    }
    if (!attr->tx_cq || !attr->rx_cq || attr->tx_cq->domain != domain || attr->rx_cq->domain != domain ||
        !ofpi_vector_is_usable(domain, attr->av) || ofpi_counters_check(domain, attr->counters) != 0 ||
        (attr->eq && attr->eq->domain != domain)) {
        snprintf(text, text_size, "an endpoint needs queues, counters and an address vector of its own domain");
        return -EINVAL;
    }
    if (attr->tx_size > OFP_COUNT_MAX || attr->unexpected_limit > OFP_BYTES_MAX ||
        attr->min_multi_recv > OFP_BYTES_MAX) {
        snprintf(text, text_size, "%d operations in flight and %lld bytes of memory are the most", OFP_COUNT_MAX,
                 (long long)OFP_BYTES_MAX);
        return -EINVAL;
    }
    if (attr->traffic_class & ~(OFP_TRAFFIC_CLASS | 0xffu) ||
        (attr->traffic_class && !(attr->traffic_class & OFP_TRAFFIC_CLASS))) {
        snprintf(text, text_size, "a traffic class is between 0 and 255");
        return -EINVAL;
    }
    if (!(domain->info.caps & OFP_CAP_RMA_EVENT) && needs_remote_events(attr)) {
        snprintf(text, text_size, "peers read and write here without a trace, for events and counters alike");
        return -EOPNOTSUPP;
    }
    return 0;
}

static int check_traffic_class(const struct ofpi_endpoint *endpoint, char *text, size_t text_size)
{
    const struct ofp_endpoint *base = &endpoint->base;

    if (!base->traffic_class || base->ops->marks_packets)
        return 0;
    snprintf(text, text_size,
             "endpoints of %s cannot choose the traffic class of packets; those of tcp, verbs and link can",
             endpoint->info.provider);
    return -EOPNOTSUPP;
}

/*
 * Open the parts of an endpoint in the order of their dependencies, the provider's part last. release_endpoint undoes a
 * failure.
 */
static int open_endpoint_parts(struct ofpi_endpoint *endpoint, const struct ofp_endpoint_attr *attr,
                               const struct ofpi_service *service, char *text, size_t text_size)
{
    const struct ofp_endpoint_ops *ops = endpoint->base.ops;
    int error = check_traffic_class(endpoint, text, text_size);

    if (!error)
        error = open_receive_context(endpoint, attr);
    if (!error)
        /* Before the provider's open, which may already deliver messages. */
        error = ofpi_hooks_open(endpoint, text, text_size);
    if (!error)
        error = ofpi_connection_open(endpoint, attr->request);
    if (error)
        return error;
    /* The service of a listener may be a name of the provider's, which a user cannot choose. */
    error =
        ops->open(&endpoint->base, attr->listener_service ? attr->listener_service : service->text, text, text_size);
    if (error) {
        ofpi_service_describe_error(service, error, text, text_size);
        return error;
    }
    if (ops->eager_peers && endpoint->av) {
        error = ofpi_peers_create(endpoint);
        if (error)
            ops->close(&endpoint->base, 0);
    }
    return error;
}

static void publish_name(struct ofpi_endpoint *endpoint)
{
    char address[OFP_ADDRESS_MAX], name[OFP_TEXT_MAX] = "";
    size_t length = sizeof(address);

    if (endpoint->base.ops->name(&endpoint->base, address, &length) == 0)
        endpoint->domain->base.provider->address_format(&endpoint->info, address, length, name, sizeof(name));
    ofpi_counts_set_name(endpoint->counts, name);
}

/* Add an open endpoint to its domain, and count it as a user of its queues. Cannot fail. */
static void add_endpoint(struct ofpi_domain *domain, struct ofpi_endpoint *endpoint,
                         const struct ofp_endpoint_attr *attr)
{
    /* Only now: if opening fails, the listener keeps the connection request. */
    ofpi_connection_opened(endpoint);
    ofpi_bounce_open(endpoint);
    attr->tx_cq->uses++;
    attr->rx_cq->uses++;
    if (attr->av)
        attr->av->uses++;
    ofpi_counters_bind(endpoint, attr->counters);
    if (attr->eq)
        attr->eq->uses++;
    ofp_list_append(&domain->endpoints, &endpoint->node);
    domain->endpoint_count++;
    /* An armed queue must be armed again, with the descriptors of the new endpoint. */
    domain->endpoints_armed = false;
}

int ofp_endpoint_open(struct ofp_domain *handle, const struct ofp_endpoint_attr *attr, struct ofp_endpoint **result,
                      char *text, size_t text_size)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_service service;
    struct ofpi_endpoint *endpoint;
    int error;

    text[0] = 0;
    error = check_endpoint_attributes(domain, attr, text, text_size);
    if (!error)
        error = ofpi_service_choose(&service, attr->service, text, text_size);
    if (!error)
        error = ofpi_domain_enter(domain);
    if (error)
        return error;
    endpoint = create_endpoint(domain, attr);
    error = endpoint ? open_endpoint_parts(endpoint, attr, &service, text, text_size) : -ENOMEM;
    if (error) {
        if (endpoint)
            release_endpoint(endpoint);
        ofpi_domain_leave(domain);
        free(endpoint);
        if (!text[0])
            snprintf(text, text_size, "cannot open an endpoint: %s", ofp_strerror(error));
        return error;
    }
    add_endpoint(domain, endpoint, attr);
    publish_name(endpoint);
    ofpi_domain_leave(domain);
    *result = &endpoint->base;
    return 0;
}

/*
 * Let the transport send what it has accepted. The lock is released meanwhile, since the peers may live in this domain.
 */
static void drain_transport(struct ofpi_endpoint *endpoint, uint64_t deadline)
{
    struct ofpi_domain *domain = endpoint->domain;

    if (!endpoint->base.ops->drain)
        return;
    while (endpoint->base.ops->drain(&endpoint->base) == -EAGAIN) {
        struct pollfd entry = {.fd = domain->reactor.epoll_fd, .events = POLLIN};

        if (ofpi_clock_read() >= deadline) {
            ofpi_unsent_add_transport(endpoint);
            return;
        }
        ofpi_domain_progress(domain, true);
        ofpi_domain_leave(domain);
        poll(&entry, 1, 1);
        ofpi_lock_acquire(&domain->lock);
    }
}

int ofp_endpoint_retire(struct ofp_endpoint *handle, int64_t timeout)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_domain *domain = endpoint->domain;
    uint64_t deadline = timeout < 0 ? UINT64_MAX : ofpi_clock_read() + (uint64_t)timeout;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    if (endpoint->closing && !endpoint->draining) {
        ofpi_domain_refuse(domain);
        return -ECANCELED;
    }
    if (ofpi_endpoint_is_alias(endpoint) || endpoint->aliases) {
        result = endpoint->aliases ? -EBUSY : 0;
        if (!result)
            ofpi_alias_retire(endpoint);
        ofpi_domain_leave(domain);
        return result;
    }
    endpoint->lingers = endpoint->refuses = endpoint->closing = endpoint->stopped = true;
    endpoint->draining = false;
    /* Wait for the threads that wait for space: below, the endpoint is closed. */
    ofpi_wait_for_leavers(domain, &endpoint->waiting_for_room);
    drain_transport(endpoint, deadline);
    endpoint->base.ops->close(handle, deadline);
    ofpi_levels_write(endpoint);
    ofp_list_remove(&endpoint->node);
    if (ofp_list_linked(&endpoint->flush_node))
        ofp_list_remove(&endpoint->flush_node);
    domain->endpoint_count--;
    ofpi_works_leave_endpoint(endpoint);
    ofpi_peers_close(endpoint);
    if (endpoint->receive_context)
        ofpi_receive_context_drain(endpoint->receive_context, handle, ECANCELED);
    ofpi_groups_leave_endpoint(endpoint);
    endpoint->tx_cq->uses--;
    endpoint->rx_cq->uses--;
    if (endpoint->av)
        endpoint->av->uses--;
    ofpi_counters_unbind(endpoint);
    if (endpoint->eq)
        endpoint->eq->uses--;
    release_endpoint(endpoint);
    ofpi_domain_leave(domain);
    return 0;
}

void ofp_endpoint_free(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;

    /* Memory is freed apart from the close: threads that enter a call still check `closing`. */
    if (!endpoint->closing)
        return;
    free(endpoint->unsent.peers);
    free(endpoint);
}

int ofp_endpoint_close(struct ofp_endpoint *endpoint, int64_t timeout)
{
    int result = ofp_endpoint_retire(endpoint, timeout);

    if (!result)
        ofp_endpoint_free(endpoint);
    return result;
}

int ofp_endpoint_address(struct ofp_endpoint *handle, void *address, size_t *length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    endpoint = endpoint->behind;
    result = endpoint->base.ops->name(&endpoint->base, address, length);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_endpoint_address_also(struct ofp_endpoint *handle, uint32_t number, void *address, size_t *length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    handle = &endpoint->behind->base;
    result = handle->ops->name_also ? handle->ops->name_also(handle, number, address, length) : -ENOENT;
    ofpi_domain_leave(endpoint->domain);
    return result;
}

void ofp_endpoint_identity(struct ofp_endpoint *handle, uint8_t *identity)
{
    memcpy(identity, ((struct ofpi_endpoint *)handle)->behind->base.identity, OFP_IDENTITY_SIZE);
}

uint32_t ofp_endpoint_id(struct ofp_endpoint *endpoint) { return endpoint->id; }
