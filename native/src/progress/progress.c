/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of progress over a domain; arming it before a sleep, and disarming it. */
#include "progress/progress.h"

#include <sched.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/reactor.h"
#include "base/ticks.h"
#include "base/timer.h"
#include "object/domain.h"
#include "ofipy/ofp.h"
#include "progress/flush.h"
#include "progress/levels.h"

/* Between two polls of the kernel while rounds poll memory: 40 to 100 µs at 2 to 5 GHz. */
#define REACTOR_TICKS 200000

/* No descriptor becomes readable when a transport has space again: poll again after this time (ns). */
#define BACKLOG_PAUSE 200000

/* A polling receiver makes space for its senders sooner than this: 25 to 50 µs. */
#define STANDSTILL_TICKS 100000
#define STANDSTILL_PAUSE 50000 /* ns */

static int poll_kernel(struct ofpi_domain *domain)
{
    int events = ofpi_reactor_poll(&domain->reactor);

    if (ofpi_timers_are_running(&domain->timers))
        events += ofpi_timers_run(&domain->timers, ofpi_clock_read());
    domain->reactor_ticks = ofpi_ticks_read();
    if (domain->reactor_ticks - domain->levels_ticks > REACTOR_TICKS)
        ofpi_domain_levels_write(domain);
    return events;
}

int ofpi_domain_progress(struct ofpi_domain *domain, bool kernel)
{
    struct ofp_list *node, *following;
    bool had_no_space = domain->no_space;
    int events = 0;

    OFPI_CHECK(ofpi_domain_is_held(domain));
    /* The caller is a callback of a provider, which must not be entered a second time. */
    if (domain->in_progress)
        return 0;
    domain->in_progress = true;
    domain->no_space = false;
    domain->round_ticks = ofpi_ticks_read();
    ofp_store_relaxed(&domain->progress_count, ofp_load_relaxed(&domain->progress_count) + 1);
    OFP_LIST_EACH(node, following, &domain->endpoints) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        events += endpoint->base.ops->progress(&endpoint->base);
        if (__builtin_expect(!ofp_list_empty(&endpoint->backlogged), 0)) {
            int posted = domain->upper->post_backlogs(endpoint);

            events += posted;
            if (posted || !had_no_space)
                domain->space_ticks = domain->round_ticks;
            domain->no_space |= !ofp_list_empty(&endpoint->backlogged);
        }
        if (__builtin_expect(endpoint->batched, 0))
            ofpi_endpoint_flush(endpoint);
        if (__builtin_expect(endpoint->ending, 0))
            domain->upper->connection_finish(endpoint);
    }
    if (kernel || domain->round_ticks - domain->reactor_ticks > REACTOR_TICKS)
        events += poll_kernel(domain);
    /* An event may have consumed a wake-up that armed endpoints rely on, and more of its data may be pending. */
    if (events)
        domain->endpoints_armed = false;
    domain->in_progress = false;
    if (__builtin_expect(!ofp_list_empty(&domain->due), 0))
        events += domain->upper->start_due(domain);
    if (__builtin_expect(!ofp_list_empty(&domain->due_turns), 0))
        events += domain->upper->run_turns(domain);
    return events;
}

/*
 * There may be no space until the receiver runs, or until another sender runs that was preempted in the middle of its
 * post: the receiver cannot read beyond that post. A yield lets the receiver run. It does not help a preempted sender
 * that has used up its time slice, if many processes share the processor: such a sender runs only if the others sleep.
 * So sleep after a long time without space. The sleep also leaves space to other senders of the same receiver.
 */
void ofpi_domain_leave_full(struct ofpi_domain *domain)
{
    struct timespec pause = {.tv_nsec = STANDSTILL_PAUSE};
    bool standstill = domain->round_ticks - domain->space_ticks > STANDSTILL_TICKS;

    ofpi_domain_leave(domain);
    if (standstill)
        nanosleep(&pause, NULL);
    else
        sched_yield();
}

static uint64_t find_next_deadline(const struct ofpi_domain *domain)
{
    uint64_t deadline = ofpi_timers_find_deadline(&domain->timers);

    if ((!ofp_list_empty(&domain->due) || !ofp_list_empty(&domain->due_turns)) &&
        ofpi_clock_read() + BACKLOG_PAUSE < deadline)
        deadline = ofpi_clock_read() + BACKLOG_PAUSE;
    for (const struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        if (!ofp_list_empty(&OFP_CONTAINER_OF(node, const struct ofpi_endpoint, node)->backlogged)) {
            uint64_t again = ofpi_clock_read() + BACKLOG_PAUSE;

            return again < deadline ? again : deadline;
        }
    }
    return deadline;
}

void ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer)
{
    /* Threads that sleep wait until a later deadline than this one: have them armed again. */
    if (timer->deadline < domain->reactor.armed_deadline)
        domain->endpoints_armed = false;
    ofpi_timers_start(&domain->timers, timer);
}

bool ofpi_domain_arm(struct ofpi_domain *domain)
{
    struct ofp_list *node, *following;

    OFPI_CHECK(ofpi_domain_is_held(domain));
    if (!domain->endpoints_armed) {
        OFP_LIST_EACH(node, following, &domain->endpoints) {
            struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

            if (!endpoint->base.ops->arm(&endpoint->base)) {
                ofpi_domain_disarm(domain);
                return false;
            }
        }
        /*
         * A library that matches by itself makes progress in every call, and may read events without waking a sleeper.
         * So its endpoints never count as armed, and are armed again each time.
         */
        domain->endpoints_armed = !domain->info.offloads_matching;
    }
    ofpi_reactor_arm_deadline(&domain->reactor, find_next_deadline(domain));
    return true;
}

void ofpi_domain_disarm(struct ofpi_domain *domain)
{
    struct ofp_list *node, *following;

    domain->endpoints_armed = false;
    OFP_LIST_EACH(node, following, &domain->endpoints) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        endpoint->base.ops->disarm(&endpoint->base);
    }
}

void ofpi_domain_arm_again(struct ofpi_domain *domain)
{
    /* Do not arm within a callback of a provider; the outermost caller arms when it leaves. */
    while (ofpi_domain_has_sleepers(domain) && !domain->in_progress && !ofpi_domain_arm(domain)) {
        if (ofpi_domain_progress(domain, true) == 0) {
            ofpi_reactor_arm_deadline(&domain->reactor, ofpi_clock_read() + BACKLOG_PAUSE);
            break;
        }
    }
}

int ofp_domain_progress(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    result = ofpi_domain_progress(domain, true);
    ofpi_domain_leave_polled(domain);
    return result;
}
