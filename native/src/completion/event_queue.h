/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. The domain's lock guards all members. */
#ifndef OFPI_EVENT_QUEUE_H
#define OFPI_EVENT_QUEUE_H

#include "progress/sleeper.h"

struct ofp_eq {
    struct ofpi_domain *domain;
    struct ofp_list node;    /* in domain->event_queues */
    struct ofp_list entries; /* struct entry of event_queue.c, oldest first */
    uint64_t count, size;    /* if `count` reaches `size`, events that the program writes are refused */
    uint32_t uses;           /* endpoints bound to it */
    uint32_t waiting;        /* threads in ofp_eq_wait */
    bool closing;            /* set by ofp_eq_retire, and never cleared: waits end, calls are refused */
    struct ofpi_sleeper sleeper;
};

/* Write an event, with event->data_length bytes of data, beyond `size` if need be. -ENOMEM. */
int ofpi_eq_write(struct ofp_eq *eq, const struct ofp_event *event, const void *data);
/* Write an event about an incarnation of a peer, 0: none; out of memory: log an error instead. */
void ofpi_eq_report_peer(struct ofp_eq *eq, const struct ofp_peer *peer, uint32_t kind, uint32_t incarnation, int error,
                         int provider_error);
/* Write an event about the domain's device to each of its event queues; out of memory: log an error instead. */
void ofpi_eq_report_device(struct ofpi_domain *domain, int error, const char *text);

#endif
