/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress over a domain, and arming it for sleep. The domain's lock is held. */
#ifndef OFPI_PROGRESS_H
#define OFPI_PROGRESS_H

#include "base/check.h"
#include "object/domain.h"
#include "progress/flush.h"

/*
 * One round over all endpoints. With `kernel` the round polls the reactor's descriptors and the timers too; without,
 * only if the last such poll was some time ago. Returns the number of events.
 */
int ofpi_domain_progress(struct ofpi_domain *domain, bool kernel);
/* Start a timer of the domain. It expires in time even if all threads sleep. -ENOMEM. */
void ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer);
/* Arm every endpoint and the next deadline. False: an endpoint has events to handle or cannot be armed; none is. */
bool ofpi_domain_arm(struct ofpi_domain *domain);
void ofpi_domain_disarm(struct ofpi_domain *domain);
/* Arm again for threads that sleep: a thread that made progress since may have disarmed the endpoints. */
void ofpi_domain_arm_again(struct ofpi_domain *domain);
/* Every public call that has entered the domain ends with this function, which releases the lock. */
static inline void ofpi_domain_leave(struct ofpi_domain *domain)
{
    OFPI_CHECK(ofpi_domain_is_held(domain));
    if (__builtin_expect(!ofp_list_empty(&domain->due), 0))
        domain->upper->start_due(domain);
    if (__builtin_expect(!ofp_list_empty(&domain->due_turns), 0))
        domain->upper->run_turns(domain);
    if (__builtin_expect(!ofp_list_empty(&domain->to_flush), 0))
        ofpi_domain_flush(domain);
    if (__builtin_expect(!domain->endpoints_armed && ofpi_domain_has_sleepers(domain), 0))
        ofpi_domain_arm_again(domain);
    ofpi_lock_release(&domain->lock);
}
/* Leave when a transport had no space for the whole backlog: yield or sleep, so that the receiver can run. */
void ofpi_domain_leave_full(struct ofpi_domain *domain);
/* Leave after a poll that the program repeats until it succeeds. */
static inline void ofpi_domain_leave_polled(struct ofpi_domain *domain)
{
    if (__builtin_expect(domain->no_space, 0))
        ofpi_domain_leave_full(domain);
    else
        ofpi_domain_leave(domain);
}

#endif
