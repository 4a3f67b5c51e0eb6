/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor of a queue or counter, on which its users sleep. The domain's lock guards all members.
 *
 * Usually one thread arms the descriptor. When that thread calls the queue, it is awake, so the call may disarm the
 * descriptor. If several threads have armed it, the core does not know which of them sleep. The descriptor then stays
 * armed until the queue has completions or events. After that it stays readable until a thread finds none and arms it
 * again.
 */
#ifndef OFPI_SLEEPER_H
#define OFPI_SLEEPER_H

#include "object/domain.h"
#include "progress/wait.h"

struct ofpi_sleeper {
    bool armed;             /* a thread may sleep on `epoll_fd` */
    bool event_set;         /* event_fd is readable; never while `armed` */
    uint64_t user;          /* the thread that armed it since it was last neither armed nor set; 0: several */
    int event_fd, epoll_fd; /* -1 until the user first gets the descriptor */
    int timer_fd;           /* expires for a poll; -1: the domain's descriptor is used */
};

void ofpi_sleeper_init(struct ofpi_sleeper *sleeper);
void ofpi_sleeper_close(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* Wake the users of the descriptor, which is armed. */
void ofpi_sleeper_wake(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
void ofpi_sleeper_disarm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/*
 * A thread polls the queue. If it alone has armed the descriptor, no thread sleeps there: disarm, and clear the event.
 */
static inline void ofpi_sleeper_disarm_own(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    if (__builtin_expect(sleeper->armed || sleeper->event_set, 0) && sleeper->user == ofpi_thread_identify())
        ofpi_sleeper_disarm(domain, sleeper);
}
int ofpi_sleeper_get_fileno(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/*
 * Arm the descriptor, after ofpi_sleeper_get_fileno. 1: the user may sleep. 0: `is_ready` is true, or an endpoint
 * cannot be armed; the user must poll again.
 */
int ofpi_sleeper_arm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                     const void *argument);
/* Arm without a round of progress first. A descriptor that is still armed stays so. True: the user may sleep. */
bool ofpi_sleeper_arm_quiet(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                            const void *argument);

#endif
