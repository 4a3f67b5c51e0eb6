/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's event queues, which report connection events. A domain has one queue for its endpoints. Each listener has
 * its own, since a provider stores a partly read request with the queue and frees it only with the queue. Guarded by
 * the core's domain lock.
 */
#ifndef OFI_EVENTS_H
#define OFI_EVENTS_H

#include "abi_connection.h"
#include "bridge.h"

/* A connection event. */
struct bridge_connection_event {
    uint32_t kind;        /* enum lf_event */
    int error;            /* 0, or positive: then `kind` is not valid */
    struct lf_info *info; /* of a request; the handler owns it */
    const void *data;     /* the peer's private data, valid during the call */
    size_t length;
};

/* The context of a libfabric object: the handler of its connection events. */
struct bridge_event_handler {
    void (*handle)(struct bridge_event_handler *handler, const struct bridge_connection_event *event);
};

struct bridge_events {
    struct lf_eq *eq; /* NULL: not open */
    struct lf_fabric *fabric;
    struct ofp_domain *domain;
    struct ofp_watch watch;
    struct ofp_watch notification; /* notification descriptor, -1: none; signalled after a call that made libfabric do
                                    * what waiters wait for */
    bool asleep;                   /* a waiter sleeps on it */
};

/* 0 or a negative errno. */
int bridge_events_open(struct bridge_events *events, struct ofp_domain *domain);
void bridge_events_close(struct bridge_events *events);
/* For domains whose `watch` also reports for the endpoints' queues: let a sleeping waiter check all of them. */
int bridge_notification_open(struct bridge_events *events);
void bridge_sleepers_notify(struct bridge_events *events);
/* Read all events and call their handlers. */
void bridge_events_read(struct bridge_events *events);

#endif
