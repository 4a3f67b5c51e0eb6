/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. The domain's lock guards all. */
#ifndef OFPI_EVENT_QUEUE_H
#define OFPI_EVENT_QUEUE_H

#include "progress/sleeper.h"

struct ofp_eq {
    struct ofpi_domain *domain;
    struct ofp_list node;    /* in domain->event_queues */
    struct ofp_list entries; /* oldest first */
    uint64_t count, size;    /* `size`: above it the program's own events are refused */
    uint32_t uses;           /* endpoints bound to it */
    uint32_t waiting;        /* threads in ofp_eq_wait */
    bool closing;            /* waits end, calls are refused; set for good by retiring */
    struct ofpi_sleeper sleeper;
};

/* Write an event of the core's own, with event->data_length bytes. */
int ofpi_eq_write(struct ofp_eq *eq, const struct ofp_event *event, const void *data);
/* Something happened to a peer. */
void ofpi_eq_report_peer(struct ofp_eq *eq, const struct ofp_peer *peer, uint32_t kind, int error, int provider_error);
/* Something happened to the domain's device. */
void ofpi_eq_report_device(struct ofpi_domain *domain, int error, const char *text);

#endif
