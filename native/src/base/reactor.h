/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One epoll descriptor for the watches of a domain and one timerfd. The epoll descriptor itself is readable when any
 * watch is ready or the armed deadline has passed. A callback may remove any watch, its own included, even one that is
 * in the current batch. The caller holds the domain's lock.
 */
#ifndef OFPI_REACTOR_H
#define OFPI_REACTOR_H

#include "ofipy/provider.h"

struct ofpi_reactor {
    int epoll_fd;
    int timer_fd;
    uint64_t armed_deadline;  /* UINT64_MAX: timerfd disarmed */
    struct ofp_watch **batch; /* the current batch; entries of removed watches are set to NULL */
    int batch_count;
    uint32_t watch_count;
};
int ofpi_reactor_open(struct ofpi_reactor *reactor);
void ofpi_reactor_close(struct ofpi_reactor *reactor);
int ofpi_reactor_add(struct ofpi_reactor *reactor, struct ofp_watch *watch);
int ofpi_reactor_update(struct ofpi_reactor *reactor, struct ofp_watch *watch);
void ofpi_reactor_remove(struct ofpi_reactor *reactor, struct ofp_watch *watch);
/*
 * Poll the kernel without waiting and call `ready` of each watch that is ready; returns how many. Clears an expired
 * timerfd.
 */
int ofpi_reactor_poll(struct ofpi_reactor *reactor);
/* Make epoll_fd readable at `deadline` (CLOCK_MONOTONIC ns; UINT64_MAX: never). No system call when unchanged. */
void ofpi_reactor_arm_deadline(struct ofpi_reactor *reactor, uint64_t deadline);

#endif
