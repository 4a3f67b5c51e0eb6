/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor of a queue, on which its users sleep. The domain's lock is held.
 *
 * As a rule one thread arms it, and as soon as that one comes by it is known to be awake. Of several threads nobody knows who still
 * sleeps: for them it stays armed until there is news, and readable from then on until somebody who finds no more arms it again.
 */
#ifndef OFPI_SLEEPER_H
#define OFPI_SLEEPER_H

#include "object/domain.h"
#include "progress/wait.h"

struct ofpi_sleeper {
    bool armed;             /* somebody sleeps on `epoll_fd` */
    bool event_set;         /* event_fd is readable; never while it is armed */
    uint64_t user;          /* the thread that has armed it since it was last neither; 0: several have */
    int event_fd, epoll_fd; /* -1 until the descriptor is first asked for */
    int timer_fd;           /* looks by the clock; -1: the domain's descriptor tells of work */
};

void ofpi_sleeper_init(struct ofpi_sleeper *sleeper);
void ofpi_sleeper_close(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* Wake the users of the descriptor, which is armed. */
void ofpi_sleeper_wake(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
void ofpi_sleeper_disarm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* A thread looks at the queue: if it alone has armed it, nobody sleeps, and the descriptor need not stay readable. */
static inline void ofpi_sleeper_disarm_own(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper)
{
    if (__builtin_expect(sleeper->armed || sleeper->event_set, 0) && sleeper->user == ofpi_thread_identify())
        ofpi_sleeper_disarm(domain, sleeper);
}
int ofpi_sleeper_get_fileno(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper);
/* After fileno. 1: safe to sleep; 0: there is news, or something neither sleeps nor works. */
int ofpi_sleeper_arm(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                     const void *argument);
/* The same without progress; of one that is still armed nothing is asked. */
bool ofpi_sleeper_arm_quiet(struct ofpi_domain *domain, struct ofpi_sleeper *sleeper, ofpi_condition *is_ready,
                            const void *argument);

#endif
