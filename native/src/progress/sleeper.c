/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor of a queue or counter: readable when the domain's reactor has an event, or when another thread's
 * progress has added to the queue while it was armed.
 *
 * Some transports have no descriptor that becomes readable on events. Others have epoll descriptors that are nested so
 * deep that the kernel allows no further level. For both, a timer makes the queue's descriptor readable at regular
 * times, so that the user polls.
 */
#include "progress/sleeper.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "progress/levels.h"
#include "progress/progress.h"
#include "progress/wait.h"

/* Between two polls by timer (ns). */
#define LOOK_PAUSE 1000000

void ofpi_sleeper_init(struct ofpi_sleeper *sleeper) { sleeper->event_fd = sleeper->epoll_fd = sleeper->timer_fd = -1; }

static bool is_polled_by_timer(const struct ofpi_sleeper *sleeper) { return sleeper->timer_fd >= 0; }

/* Set the timer to expire once after `pause` ns; 0: never. */
static void set_sleeper_timer(const struct ofpi_sleeper *sleeper, long pause)
{
    struct itimerspec setting = {.it_value.tv_nsec = pause};

    timerfd_settime(sleeper->timer_fd, 0, &setting, NULL);
}

/* A sleeper that is polled by timer needs no armed endpoints. Arming sets its timer again. */
static void set_armed(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, bool armed)
{
    if (!armed && !sleeper->armed)
        return;
    if (is_polled_by_timer(sleeper))
        set_sleeper_timer(sleeper, armed ? LOOK_PAUSE : 0);
    else if (sleeper->armed != armed)
        domain->armed_queues += armed ? 1 : -1u;
    sleeper->armed = armed;
}

void ofpi_sleeper_close(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    set_armed(domain, sleeper, false);
    if (is_polled_by_timer(sleeper))
        close(sleeper->timer_fd);
    if (sleeper->epoll_fd >= 0) {
        close(sleeper->epoll_fd);
        close(sleeper->event_fd);
    }
}

void ofpi_sleeper_wake(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    uint64_t one = 1;

    OFPI_CHECK(ofpi_domain_is_held(domain) && sleeper->armed);
    /* One write is enough until a thread arms the descriptor again. */
    set_armed(domain, sleeper, false);
    sleeper->event_set = write(sleeper->event_fd, &one, sizeof(one)) == sizeof(one);
}

static void clear_event(struct ofpi_sleeper *sleeper)
{
    uint64_t ignored;

    /* Make no system call if the event is not set: a thread that only polls pays nothing. */
    if (sleeper->event_set && read(sleeper->event_fd, &ignored, sizeof(ignored)) == sizeof(ignored))
        sleeper->event_set = false;
}

void ofpi_sleeper_disarm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    set_armed(domain, sleeper, false);
    clear_event(sleeper);
}

static bool add_to_epoll(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Whether a program can add the descriptor to its own epoll descriptor: the kernel allows five levels. */
static bool can_be_watched(int epoll_fd)
{
    int above = epoll_create1(EPOLL_CLOEXEC);
    bool result = above >= 0 && add_to_epoll(above, epoll_fd);

    if (above >= 0)
        close(above);
    return result;
}

/* Add the second source that makes the descriptor readable, besides event_fd: the reactor, or a timer. */
static bool add_source(const struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    int reactor = domain->reactor.epoll_fd;

    if (domain->info.wait_fd && add_to_epoll(sleeper->epoll_fd, reactor)) {
        if (can_be_watched(sleeper->epoll_fd))
            return true;
        epoll_ctl(sleeper->epoll_fd, EPOLL_CTL_DEL, reactor, NULL);
    }
    sleeper->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return add_to_epoll(sleeper->epoll_fd, sleeper->timer_fd);
}

static int open_descriptor(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    int error;

    sleeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sleeper->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sleeper->epoll_fd >= 0 && add_to_epoll(sleeper->epoll_fd, sleeper->event_fd) && add_source(domain, sleeper))
        return 0;
    error = errno;
    if (sleeper->epoll_fd >= 0)
        close(sleeper->epoll_fd);
    if (sleeper->event_fd >= 0)
        close(sleeper->event_fd);
    if (is_polled_by_timer(sleeper))
        close(sleeper->timer_fd);
    ofpi_sleeper_init(sleeper);
    return -error;
}

int ofpi_sleeper_get_fileno(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    int result = 0;

    if (sleeper->epoll_fd < 0)
        result = open_descriptor(domain, sleeper);
    return result ? result : sleeper->epoll_fd;
}

/* Record the thread that is about to sleep. It is the only user, unless another thread may be asleep. */
static void store_sleeper_user(struct ofpi_sleeper *sleeper)
{
    uint64_t thread = ofpi_thread_identify();

    if (!sleeper->armed && !sleeper->event_set)
        sleeper->user = thread;
    else if (sleeper->user != thread)
        sleeper->user = 0;
}

/*
 * Arm the descriptor, unless the condition is true. Arming an endpoint sends its batched operations, which may complete
 * operations. Their completions wake no thread, since the descriptor is not armed yet, so the condition is checked
 * again.
 */
static bool arm_if_not_ready(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                             const void *argument)
{
    if (is_ready(argument) || (!is_polled_by_timer(sleeper) && !ofpi_domain_arm(domain)) || is_ready(argument))
        return false;
    clear_event(sleeper);
    set_armed(domain, sleeper, true);
    ofpi_domain_levels_write(domain);
    return true;
}

bool ofpi_sleeper_arm_quiet(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                            const void *argument)
{
    /* A library that matches by itself may have read the event that would wake the user: only progress finds it. */
    if (domain->info.offloads_matching)
        return false;
    store_sleeper_user(sleeper);
    /*
     * A sleeper that is still armed stays safe: new completions or events wake it, and each call that leaves the domain
     * arms the endpoints again. Only a timer that several threads use has to be set again.
     */
    if (sleeper->armed && (sleeper->user || !is_polled_by_timer(sleeper)))
        return true;
    ofpi_sleeper_disarm_own(domain, sleeper);
    return arm_if_not_ready(domain, sleeper, is_ready, argument);
}

int ofpi_sleeper_arm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                     const void *argument)
{
    store_sleeper_user(sleeper);
    ofpi_sleeper_disarm_own(domain, sleeper);
    /* A descriptor that is still readable for an event handled before would wake the user for nothing: poll first. */
    ofpi_domain_progress(domain, true);
    while (!is_ready(argument)) {
        if (arm_if_not_ready(domain, sleeper, is_ready, argument))
            return 1;
        /* An endpoint cannot be armed, but has no events either: the caller polls again. */
        if (ofpi_domain_progress(domain, true) == 0)
            break;
    }
    return 0;
}
