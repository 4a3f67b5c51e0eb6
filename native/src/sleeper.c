/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor of a queue: readable when the domain has work, or somebody else's progress put something into the queue. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "domain.h"

void ofpi_sleeper_init(struct ofpi_sleeper *sleeper) { sleeper->event_fd = sleeper->epoll_fd = -1; }

static void set_armed(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, bool armed)
{
    if (sleeper->armed == armed)
        return;
    sleeper->armed = armed;
    domain->armed_queues += armed ? 1 : -1u;
}

void ofpi_sleeper_close(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    set_armed(domain, sleeper, false);
    if (sleeper->epoll_fd >= 0) {
        close(sleeper->epoll_fd);
        close(sleeper->event_fd);
    }
}

void ofpi_sleeper_rouse(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    uint64_t one = 1;

    set_armed(domain, sleeper, false);
    sleeper->event_set = write(sleeper->event_fd, &one, sizeof(one)) == sizeof(one);
}

void ofpi_sleeper_awake(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    uint64_t ignored;

    set_armed(domain, sleeper, false);
    if (sleeper->event_set && read(sleeper->event_fd, &ignored, sizeof(ignored)) == sizeof(ignored))
        sleeper->event_set = false;
}

static int open_descriptor(const struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (epoll_fd < 0 || event_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &event) != 0 ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, domain->reactor.epoll_fd, &event) != 0) {
        int error = errno;

        if (epoll_fd >= 0)
            close(epoll_fd);
        if (event_fd >= 0)
            close(event_fd);
        return -error;
    }
    sleeper->epoll_fd = epoll_fd;
    sleeper->event_fd = event_fd;
    return 0;
}

int ofpi_sleeper_fileno(const struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    int result = 0;

    if (!domain->base.info.wait_fd)
        return -EOPNOTSUPP;
    if (sleeper->epoll_fd < 0)
        result = open_descriptor(domain, sleeper);
    return result ? result : sleeper->epoll_fd;
}

int ofpi_sleeper_arm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *news,
                     const void *argument)
{
    ofpi_sleeper_awake(domain, sleeper);
    /* Descriptors that are readable for what was handled already would wake the sleeper for nothing. */
    ofpi_progress(domain, true);
    while (!news(argument)) {
        if (ofpi_arm(domain)) {
            set_armed(domain, sleeper, true);
            return 1;
        }
        /* An endpoint that neither sleeps nor has work is looked at again by the caller. */
        if (ofpi_progress(domain, true) == 0)
            break;
    }
    return 0;
}
