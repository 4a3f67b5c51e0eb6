/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's event queues, which report connection events: open, watch, read. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "events.h"

/* Rounds in which a queue with more events is read; the remaining ones wake the watch again. */
#define ROUNDS 4

struct entry {
    struct lf_eq_entry entry;
    char data[OFP_EVENT_DATA_MAX];
};

static void notify_handler(const struct lf_fid *fid, const struct bridge_connection_event *event)
{
    struct bridge_event_handler *handler = fid ? fid->context : NULL;

    if (handler)
        handler->handle(handler, event);
}

static bool read_error_event(const struct bridge_events *events)
{
    char data[OFP_EVENT_DATA_MAX];
    struct lf_eq_error failure = {.error_data = data, .error_data_size = sizeof(data)};
    struct bridge_connection_event event;

    if (events->eq->ops->readerr(events->eq, &failure, 0) < 0)
        return false;
    event =
        (struct bridge_connection_event){.error = failure.error ? bridge_error_convert(failure.error) : ECONNABORTED};
    /* Without private data the library leaves the buffer unchanged, or sets its size to 0. */
    if (failure.error_data == data && failure.error_data_size < sizeof(data)) {
        event.data = data;
        event.length = failure.error_data_size;
    }
    notify_handler(failure.fid, &event);
    return true;
}

static bool read_event(const struct bridge_events *events)
{
    struct entry said;
    uint32_t kind;
    ssize_t length = events->eq->ops->read(events->eq, &kind, &said, sizeof(said), 0);

    if (length == -LF_EAVAIL)
        return read_error_event(events);
    if (length < (ssize_t)sizeof(said.entry))
        return false;
    notify_handler(said.entry.fid,
                   &(struct bridge_connection_event){.kind = kind,
                                                     .info = kind == LF_EVENT_REQUEST ? said.entry.info : NULL,
                                                     .data = said.data,
                                                     .length = (size_t)length - sizeof(said.entry)});
    return true;
}

void bridge_events_read(struct bridge_events *events)
{
    struct lf_fid *queue = &events->eq->fid;

    /* The descriptor stays readable until trywait has been called. */
    for (int round = 0; round < ROUNDS; round++) {
        while (read_event(events))
            ;
        if (events->fabric->ops->trywait(events->fabric, &queue, 1) == 0)
            return;
    }
}

static void handle_readable_queue(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    bridge_events_read(OFP_CONTAINER_OF(watch, struct bridge_events, watch));
}

int bridge_events_open(struct bridge_events *events, struct ofp_domain *domain)
{
    struct lf_eq_attr attr = {.wait_object = LF_WAIT_FD};
    struct lf_fabric *fabric = bridge_domain_of(domain)->fabric;
    int fd = -1, result;

    *events = (struct bridge_events){.fabric = fabric, .domain = domain, .watch.fd = -1, .notification.fd = -1};
    result = fabric->ops->eq_open(fabric, &attr, &events->eq, NULL);
    if (result) {
        events->eq = NULL;
        return -bridge_error_convert(result);
    }
    result = events->eq->fid.ops->control(&events->eq->fid, LF_COMMAND_GETWAIT, &fd);
    events->watch = (struct ofp_watch){.fd = fd, .events = EPOLLIN, .ready = handle_readable_queue};
    result = result ? -bridge_error_convert(result) : bridge_core->watch_add(domain, &events->watch);
    if (result) {
        events->watch.fd = -1;
        bridge_events_close(events);
    }
    return result;
}

/* Clear the descriptor; progress follows. */
static void clear_notification(struct ofp_watch *watch, uint32_t events)
{
    uint64_t count;

    (void)events;
    (void)!read(watch->fd, &count, sizeof(count));
}

int bridge_notification_open(struct bridge_events *events)
{
    int result;

    events->notification = (struct ofp_watch){
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = EPOLLIN, .ready = clear_notification};
    if (events->notification.fd < 0)
        return -errno;
    result = bridge_core->watch_add(events->domain, &events->notification);
    if (result) {
        close(events->notification.fd);
        events->notification.fd = -1;
    }
    return result;
}

void bridge_sleepers_notify(struct bridge_events *events)
{
    const uint64_t one = 1;

    if (events->notification.fd < 0 || !events->asleep)
        return;
    events->asleep = false;
    (void)!write(events->notification.fd, &one, sizeof(one));
}

void bridge_events_close(struct bridge_events *events)
{
    if (events->notification.fd >= 0) {
        bridge_core->watch_remove(events->domain, &events->notification);
        close(events->notification.fd);
    }
    events->notification.fd = -1;
    if (events->watch.fd >= 0)
        bridge_core->watch_remove(events->domain, &events->watch);
    events->watch.fd = -1;
    if (events->eq)
        events->eq->fid.ops->close(&events->eq->fid);
    events->eq = NULL;
}
