/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events. Events of queues arrive at the context that created the queue. All domains of the process share
 * this context, so the event may be read by any of them and is stored in the queue pair's context for its owner.
 * Events of the port and device arrive at every context; each domain opens one of its own for them.
 */
#include "device/event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "connection/channel.h"
#include "device/device.h"

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* ----------------------------------------------------------------------------------------------------------- of queues */

/* Events that end a queue pair. */
static bool is_fatal(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR ||
           type == IBV_EVENT_PATH_MIG_ERR;
}

/* The queue pair and its context exist until the event is acknowledged: ibv_destroy_qp waits for that. */
static void handle_queue_event(struct verbs_domain *domain, const struct ibv_async_event *event)
{
    const char *device = verbs_device_name_of(domain->port), *what = verbs_calls.event_type_str(event->event_type);
    char text[OFP_TEXT_MAX];

    if (is_fatal(event->event_type)) {
        struct verbs_qp_context *context = event->element.qp->qp_context;

        atomic_store_explicit(&context->fatal, (int)event->event_type, memory_order_release);
        verbs_core->log(OFP_LOG_INFO, VERBS_NAME, "%s: queue pair %u: %s", device, event->element.qp->qp_num, what);
    } else if (event->event_type == IBV_EVENT_COMM_EST) {
        /* A message has arrived before the last message of the connection setup, which may be lost. */
        verbs_calls.notify(((struct verbs_qp_context *)event->element.qp->qp_context)->id, event->event_type);
    } else if (event->event_type == IBV_EVENT_CQ_ERR) {
        snprintf(text, sizeof(text), "%s: a completion queue has failed: %s", device, what);
        verbs_core->device_event(domain->base, EIO, text);
    }
}

static void read_queue_events(struct ofp_watch *watch, uint32_t events)
{
    struct verbs_domain *domain = OFP_CONTAINER_OF(watch, struct verbs_domain, queue_watch);
    struct ibv_async_event event;

    (void)events;
    while (verbs_calls.get_async_event(domain->port->context, &event) == 0) {
        handle_queue_event(domain, &event);
        verbs_calls.ack_async_event(&event);
    }
}

/* ------------------------------------------------------------------------------------------------ of port and device */

static const struct {
    enum ibv_event_type type;
    int error;
    const char *text;
} port_events[] = {
    {IBV_EVENT_PORT_ERR, ENETDOWN, "is down: is its interface up (ip link), its cable in?"},
    {IBV_EVENT_PORT_ACTIVE, 0, "is up"},
    {IBV_EVENT_GID_CHANGE, 0, "has other GIDs: an address of its interface has come or gone"},
    {IBV_EVENT_LID_CHANGE, 0, "has another LID: peers on the subnet know the old one"},
    {IBV_EVENT_PKEY_CHANGE, 0, "has other partition keys"},
    {IBV_EVENT_SM_CHANGE, 0, "has another subnet manager"},
    {IBV_EVENT_CLIENT_REREGISTER, 0, "is to be registered anew with the subnet manager"},
};

static void handle_port_event(struct verbs_domain *domain, const struct ibv_async_event *event)
{
    const struct verbs_port *port = domain->port;
    char text[OFP_TEXT_MAX];

    if (event->event_type == IBV_EVENT_DEVICE_FATAL) {
        snprintf(text, sizeof(text), "%s: fatal error of the device, or it was removed", verbs_device_name_of(port));
        verbs_core->device_event(domain->base, ENODEV, text);
        return;
    }
    for (size_t i = 0; i < sizeof(port_events) / sizeof(port_events[0]); i++)
        if (event->event_type == port_events[i].type && event->element.port_num == port->number) {
            snprintf(text, sizeof(text), "%s port %u %s", verbs_device_name_of(port), port->number,
                     port_events[i].text);
            verbs_core->device_event(domain->base, port_events[i].error, text);
        }
}

static void read_device_events(struct ofp_watch *watch, uint32_t events)
{
    struct verbs_domain *domain = OFP_CONTAINER_OF(watch, struct verbs_domain, device_watch);
    struct ibv_async_event event;

    (void)events;
    while (verbs_calls.get_async_event(domain->event_context, &event) == 0) {
        handle_port_event(domain, &event);
        verbs_calls.ack_async_event(&event);
    }
}

static void close_event_context(struct verbs_domain *domain)
{
    if (!domain->event_context)
        return;
    verbs_core->watch_remove(domain->base, &domain->device_watch);
    verbs_calls.close_device(domain->event_context);
    domain->event_context = NULL;
}

static int open_event_context(struct verbs_domain *domain)
{
    int result;

    domain->event_context = verbs_calls.open_device(domain->port->context->device);
    if (!domain->event_context)
        return -errno;
    set_nonblocking(domain->event_context->async_fd);
    domain->device_watch =
        (struct ofp_watch){.fd = domain->event_context->async_fd, .events = EPOLLIN, .ready = read_device_events};
    result = verbs_core->watch_add(domain->base, &domain->device_watch);
    if (result) {
        verbs_calls.close_device(domain->event_context);
        domain->event_context = NULL;
    }
    return result;
}

/* ----------------------------------------------------------------------------------------------------------- removal */

/*
 * The connection manager reports the removal before the kernel waits for all users of the device. No other event may
 * report it.
 */
static void device_removed(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_domain *domain = OFP_CONTAINER_OF(listener, struct verbs_domain, removal_listener);
    char text[OFP_TEXT_MAX];

    if (event->type != RDMA_CM_EVENT_DEVICE_REMOVAL || domain->removed)
        return;
    domain->removed = true;
    snprintf(text, sizeof(text),
             "%s was removed, or has failed: the kernel waits until the processes that use it have ended",
             verbs_device_name_of(domain->port));
    close_event_context(domain);
    verbs_core->device_event(domain->base, ENODEV, text);
}

/* This id only receives the removal event. */
static int open_removal_id(struct verbs_domain *domain)
{
    union tcp_address address = domain->address;
    char text[OFP_TEXT_MAX];

    domain->removal_listener.event = device_removed;
    return verbs_id_open(domain, &domain->removal_listener, &address, NULL, &domain->removal_id, text, sizeof(text));
}

int verbs_events_open(struct verbs_domain *domain)
{
    int result;

    set_nonblocking(domain->port->context->async_fd);
    domain->queue_watch =
        (struct ofp_watch){.fd = domain->port->context->async_fd, .events = EPOLLIN, .ready = read_queue_events};
    result = verbs_core->watch_add(domain->base, &domain->queue_watch);
    domain->watches_queues = !result;
    if (!result)
        result = open_event_context(domain);
    return result ? result : open_removal_id(domain);
}

void verbs_events_close(struct verbs_domain *domain)
{
    if (domain->removal_id)
        verbs_calls.destroy_id(domain->removal_id);
    close_event_context(domain);
    if (domain->watches_queues)
        verbs_core->watch_remove(domain->base, &domain->queue_watch);
}
