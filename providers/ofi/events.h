/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's event queues, which tell of connections. One belongs to a domain and serves its endpoints; each listener has one
 * of its own, since what a provider has half read of a request it keeps with the queue, and forgets only with that. Guarded by the
 * core's domain lock.
 */
#ifndef OFI_EVENTS_H
#define OFI_EVENTS_H

#include "abi_connection.h"
#include "bridge.h"

/* What an event queue says. */
struct bridge_connection_event {
    uint32_t kind;        /* enum lf_event */
    int error;            /* 0, or positive: then `kind` says nothing */
    struct lf_info *info; /* of a request; the hearer's */
    const void *data;     /* of the other side, valid during the call */
    size_t length;
};

/* The context of libfabric's object, who hears what concerns it. */
struct bridge_event_handler {
    void (*handle)(struct bridge_event_handler *handler, const struct bridge_connection_event *event);
};

struct bridge_events {
    struct lf_eq *eq; /* NULL: not open */
    struct lf_fabric *fabric;
    struct ofp_domain *domain;
    struct ofp_watch watch;
    struct ofp_watch notification; /* -1: none; rings where a call has made libfabric do what others wait for */
    bool asleep;                   /* somebody waits for it */
};

/* 0 or a negative errno. */
int bridge_events_open(struct bridge_events *events, struct ofp_domain *domain);
void bridge_events_close(struct bridge_events *events);
/* Where `watch` stands for the queues of endpoints too: have whoever sleeps look at all of them. */
int bridge_notification_open(struct bridge_events *events);
void bridge_sleepers_notify(struct bridge_events *events);
/* Tell the hearers of what there is. */
void bridge_events_read(struct bridge_events *events);

#endif
