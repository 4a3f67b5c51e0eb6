/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors of a domain behind one epoll descriptor, and one timerfd for the next deadline. */
#include "base/reactor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ofipy/bounds.h"

#define BATCH 32

int ofpi_reactor_open(struct ofpi_reactor *reactor)
{
    struct epoll_event event = {.events = EPOLLIN};

    memset(reactor, 0, sizeof(*reactor));
    reactor->armed_deadline = UINT64_MAX;
    reactor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (reactor->epoll_fd < 0)
        return -errno;
    reactor->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (reactor->timer_fd < 0 || epoll_ctl(reactor->epoll_fd, EPOLL_CTL_ADD, reactor->timer_fd, &event) != 0) {
        int error = errno;

        if (reactor->timer_fd >= 0)
            close(reactor->timer_fd);
        close(reactor->epoll_fd);
        return -error;
    }
    return 0;
}

void ofpi_reactor_close(struct ofpi_reactor *reactor)
{
    close(reactor->timer_fd);
    close(reactor->epoll_fd);
}

static int update_epoll(struct ofpi_reactor *reactor, int what, struct ofp_watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};

    return epoll_ctl(reactor->epoll_fd, what, watch->fd, &event) ? -errno : 0;
}

int ofpi_reactor_add(struct ofpi_reactor *reactor, struct ofp_watch *watch)
{
    int result = update_epoll(reactor, EPOLL_CTL_ADD, watch);

    if (!result)
        reactor->watch_count++;
    return result;
}

int ofpi_reactor_update(struct ofpi_reactor *reactor, struct ofp_watch *watch)
{
    return update_epoll(reactor, EPOLL_CTL_MOD, watch);
}

void ofpi_reactor_remove(struct ofpi_reactor *reactor, struct ofp_watch *watch)
{
    if (update_epoll(reactor, EPOLL_CTL_DEL, watch) == 0)
        reactor->watch_count--;
    for (int i = 0; i < reactor->batch_count; i++)
        if (reactor->batch[i] == watch)
            reactor->batch[i] = NULL;
}

static void clear_timer(struct ofpi_reactor *reactor)
{
    uint64_t ignored;

    if (read(reactor->timer_fd, &ignored, sizeof(ignored)) == sizeof(ignored))
        reactor->armed_deadline = UINT64_MAX;
}

int ofpi_reactor_poll(struct ofpi_reactor *reactor)
{
    struct epoll_event events[BATCH];
    struct ofp_watch *batch[BATCH];
    int count = epoll_wait(reactor->epoll_fd, events, OFP_ROUND_BOUND(BATCH), 0);
    int handled = 0;

    if (count <= 0)
        return 0;
    for (int i = 0; i < count; i++)
        batch[i] = events[i].data.ptr;
    reactor->batch = batch;
    reactor->batch_count = count;
    for (int i = 0; i < count; i++) {
        if (!events[i].data.ptr)
            clear_timer(reactor);
        else if (batch[i])
            batch[i]->ready(batch[i], events[i].events);
        else
            continue;
        handled++;
    }
    reactor->batch = NULL;
    reactor->batch_count = 0;
    return handled;
}

void ofpi_reactor_arm_deadline(struct ofpi_reactor *reactor, uint64_t deadline)
{
    struct itimerspec setting = {0};

    if (deadline == reactor->armed_deadline)
        return;
    if (deadline != UINT64_MAX) {
        /* A time of zero would disarm the timerfd. */
        uint64_t at = deadline ? deadline : 1;

        setting.it_value.tv_sec = (time_t)(at / 1000000000u);
        setting.it_value.tv_nsec = (long)(at % 1000000000u);
    }
    if (timerfd_settime(reactor->timer_fd, TFD_TIMER_ABSTIME, &setting, NULL) == 0)
        reactor->armed_deadline = deadline;
}
