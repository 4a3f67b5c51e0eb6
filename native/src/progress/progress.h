/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress over a domain, and the two halves of going to sleep. The domain's lock is held. */
#ifndef OFPI_PROGRESS_H
#define OFPI_PROGRESS_H

#include "base/check.h"
#include "object/domain.h"
#include "progress/flush.h"

/* One round over all endpoints; the kernel is asked now and then, or at once with `kernel`. Returns events handled. */
int ofpi_domain_progress(struct ofpi_domain *domain, bool kernel);
/* Have a timer of the domain run, whoever sleeps. -ENOMEM. */
int ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer);
/* Arm every endpoint and the next deadline. False: there is work, nothing is armed. */
bool ofpi_domain_arm(struct ofpi_domain *domain);
void ofpi_domain_disarm(struct ofpi_domain *domain);
/* Arm again, for those who sleep: what was done since may have disarmed the endpoints. */
void ofpi_domain_arm_again(struct ofpi_domain *domain);
/* Every public call that has entered the domain ends with this. */
static inline void ofpi_domain_leave(struct ofpi_domain *domain)
{
    OFPI_CHECK(ofpi_domain_is_held(domain));
    if (__builtin_expect(!ofp_list_empty(&domain->due), 0))
        domain->upper->start_due(domain);
    if (__builtin_expect(!ofp_list_empty(&domain->to_flush), 0))
        ofpi_domain_flush(domain);
    if (__builtin_expect(!domain->endpoints_armed && ofpi_domain_has_sleepers(domain), 0))
        ofpi_domain_arm_again(domain);
    ofpi_lock_release(&domain->lock);
}
/* The same where a transport had no room for all that waits: the processor is given to others. */
void ofpi_domain_leave_full(struct ofpi_domain *domain);
/* The same behind a poll that the program repeats until it finds something. */
static inline void ofpi_domain_leave_polled(struct ofpi_domain *domain)
{
    if (__builtin_expect(domain->no_space, 0))
        ofpi_domain_leave_full(domain);
    else
        ofpi_domain_leave(domain);
}

#endif
