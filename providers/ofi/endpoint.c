/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: opening, closing, and the sleep handshake. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "buffers.h"

#define MILLISECOND 1000000ull
/* Time for which closing waits without any completion. */
#define CLOSE_SILENCE (50 * MILLISECOND)

static void close_object(struct lf_fid *object)
{
    if (object)
        object->ops->close(object);
}

/* Progress follows every wake-up and reads the queue. */
static void handle_queue_event(struct ofp_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

/* Bounce buffer size of receives of unknown size whose memory is registered, and pinned, for each receive. */
#define PINNED_BOUNCE_SIZE (1 << 20)

/* -------------------------------------------------------------------------------------------------------- opening */

int bridge_queue_watch(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    int fd = -1, result;

    self->watch = (struct ofp_watch){.fd = -1, .events = EPOLLIN, .ready = handle_queue_event};
    if (!endpoint->info->wait_fd)
        return 0;
    result = self->cq->fid.ops->control(&self->cq->fid, LF_COMMAND_GETWAIT, &fd);
    if (result)
        return -bridge_error_convert(result);
    self->watch.fd = fd;
    result = bridge_core->watch_add(endpoint->domain, &self->watch);
    if (result)
        self->watch.fd = -1;
    return result;
}

int bridge_info_find_own(const struct bridge_domain *domain, const struct ofp_info *info, const char *service,
                         bool here, struct lf_info **found, char *text, size_t text_size)
{
    char node[INET6_ADDRSTRLEN];
    bool named = (service || here) && bridge_node_format_own(domain->info, node, sizeof(node));
    int error = bridge_service_check(info, service, text, text_size);

    if (error)
        return error;
    error = bridge_info_find(domain->library, info, named ? node : NULL, service,
                             named || service ? LF_GETINFO_SOURCE : 0, found);
    if (error) {
        snprintf(text, text_size, "%s cannot use %s as its own address: %s", info->provider,
                 service ? service : "any service", domain->library->strerror(-error));
        return error;
    }
    /* Otherwise some providers request an acknowledgement of everything. */
    (*found)->tx_attr->op_flags = 0;
    (*found)->rx_attr->op_flags = 0;
    return 0;
}

void bridge_limits_set(struct ofp_endpoint *endpoint, const struct lf_info *info)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);

    self->inject_size = info->tx_attr->inject_size;
    self->segment_limit = bridge_segment_limit_compute(info);
    if (!endpoint->bounce_size && info->domain_attr->mr_mode & LF_MR_LOCAL)
        endpoint->bounce_size = PINNED_BOUNCE_SIZE;
}

static int open_endpoint_objects(struct ofp_endpoint *endpoint, struct lf_info *info)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);
    struct lf_av_attr av_attr = {.type = domain->info->domain_attr->av_type};
    int error;

    if (av_attr.type == LF_AV_UNSPEC)
        av_attr.type = LF_AV_TABLE;
    self->cq = bridge_cq_open(domain, endpoint->info->wait_fd, &error);
    if (!self->cq)
        return error;
    error = domain->domain->ops->av_open(domain->domain, &av_attr, &self->av, NULL);
    if (!error)
        error = domain->domain->ops->endpoint(domain->domain, info, &self->ep, NULL);
    if (!error)
        error = self->ep->fid.ops->bind(&self->ep->fid, &self->av->fid, 0);
    if (!error)
        error = self->ep->fid.ops->bind(&self->ep->fid, &self->cq->fid, LF_SEND | LF_RECV);
    if (!error)
        error = self->ep->fid.ops->control(&self->ep->fid, LF_COMMAND_ENABLE, NULL);
    if (error)
        return -bridge_error_convert(error);
    bridge_regions_attach(endpoint);
    bridge_sender_open(endpoint);
    error = bridge_neighbour_enter(endpoint);
    if (!error && endpoint->info->ep_types == OFP_EP_DGRAM)
        error = bridge_receive_buffers_open(endpoint);
    return error ? error : bridge_queue_watch(endpoint);
}

void bridge_objects_close(struct lf_ep *ep, struct lf_av *av, struct lf_cq *cq)
{
    /* libfabric does not access the memory of operations after the endpoint is closed. */
    close_object(ep ? &ep->fid : NULL);
    close_object(av ? &av->fid : NULL);
    close_object(cq ? &cq->fid : NULL);
}

void bridge_endpoint_close_objects(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);

    if (self->watch.fd >= 0)
        bridge_core->watch_remove(endpoint->domain, &self->watch);
    self->watch.fd = -1;
    bridge_regions_detach(endpoint);
    bridge_neighbour_leave(self);
    bridge_objects_close(self->ep, self->av, self->cq);
    self->ep = NULL;
    self->av = NULL;
    self->cq = NULL;
    bridge_receive_buffers_free(self->buffers);
    self->buffers = NULL;
    bridge_slabs_free(self->slabs);
    self->slabs = NULL;
    self->free_blocks = NULL;
    free(self->deferred);
    self->deferred = NULL;
    self->deferred_count = self->deferred_capacity = 0;
}

/*
 * Whether the endpoint has the requested name: shm replaces a name that is in use by another one. Addresses that are no
 * text report EADDRINUSE themselves.
 */
static bool has_service_name(struct ofp_endpoint *endpoint, const char *service)
{
    char name[OFP_ADDRESS_MAX];
    size_t length = sizeof(name), wanted = strlen(service);

    if (endpoint->info->address_format != OFP_ADDRESS_OPAQUE ||
        bridge_endpoint_get_address(endpoint, name, &length) != 0 || length <= wanted || name[length - 1])
        return true;
    return strcmp(name + length - 1 - wanted, service) == 0;
}

int bridge_endpoint_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    const struct bridge_domain *domain = bridge_domain_of(endpoint->domain);
    struct lf_info *info;
    int error;

    bridge_endpoint_of(endpoint)->watch.fd = -1;
    error = bridge_info_find_own(domain, endpoint->info, service, false, &info, text, text_size);
    if (error)
        return error;
    bridge_limits_set(endpoint, info);
    error = bridge_open_error_convert(open_endpoint_objects(endpoint, info));
    domain->library->freeinfo(info);
    if (!error && service && !has_service_name(endpoint, service))
        error = -EADDRINUSE;
    if (error) {
        snprintf(text, text_size, "%s cannot open an endpoint%s%s: %s", endpoint->info->provider, service ? " as " : "",
                 service ? service : "", domain->library->strerror(-error));
        bridge_endpoint_close_objects(endpoint);
    }
    return error;
}

int bridge_endpoint_get_address(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);

    return -bridge_error_convert(self->ep->cm->getname(&self->ep->fid, address, length));
}

/* -------------------------------------------------------------------------------------------------------- closing */

/* Progress until all accepted sends have left, or the peer accepts no more. */
void bridge_endpoint_drain(struct ofp_endpoint *endpoint, const uint64_t *sends, uint64_t deadline)
{
    uint64_t now = bridge_core->now();
    uint64_t last_event = now;

    while (*sends && now < deadline && now - last_event < CLOSE_SILENCE) {
        int events = bridge_endpoint_progress(endpoint);

        now = bridge_core->now();
        if (events)
            last_event = now;
    }
}

void bridge_endpoint_close(struct ofp_endpoint *endpoint, uint64_t deadline)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);

    bridge_endpoint_drain(endpoint, &self->sends, deadline);
    bridge_endpoint_close_objects(endpoint);
}

void bridge_peer_drain(struct ofp_peer *peer)
{
    struct bridge_endpoint *self = bridge_endpoint_of(peer->endpoint);

    if (!self->ep)
        return;
    bridge_endpoint_drain(peer->endpoint, &bridge_peer_of(peer)->sends, UINT64_MAX);
    if (bridge_peer_of(peer)->sends)
        bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME, "%s still has %llu operations to an address that is removed",
                         peer->endpoint->info->provider, (unsigned long long)bridge_peer_of(peer)->sends);
}

/* -------------------------------------------------------------------------------------------------------- sleeping */

bool bridge_endpoint_arm(struct ofp_endpoint *endpoint)
{
    struct lf_fabric *fabric = bridge_domain_of(endpoint->domain)->fabric;
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct lf_fid *queue = &self->cq->fid;

    /* Completions that a cancellation deferred wait for the next progress. */
    return !self->deferred_count && self->watch.fd >= 0 && fabric->ops->trywait(fabric, &queue, 1) == 0;
}

void bridge_endpoint_disarm(struct ofp_endpoint *endpoint) { (void)endpoint; }
