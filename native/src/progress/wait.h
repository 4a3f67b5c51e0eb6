/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiters: threads that wait for a condition. The domain's lock is held. */
#ifndef OFPI_WAIT_H
#define OFPI_WAIT_H

#include "object/domain.h"

int ofpi_wait_open(struct ofpi_domain *domain);
void ofpi_wait_close(struct ofpi_domain *domain);
typedef bool ofpi_condition(const void *argument);
/*
 * Wait until the condition is true (returns 1), the time-out (ns; negative: none) or one second has passed (0), or a
 * signal arrives (-EINTR). The lock is released while the thread sleeps. *expired: the caller's time-out has passed.
 */
int ofpi_domain_wait(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, int64_t timeout,
                     bool *expired);
/*
 * Poll until the condition is true or `duration` (ns; 0: one poll) has passed. Never sleeps. Returns whether the
 * condition is true.
 */
bool ofpi_domain_spin(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, uint64_t duration);
/*
 * Wake waiters and release the lock until *threads, the number of waiters, is 0. The caller has made their conditions
 * true before.
 */
void ofpi_wait_for_leavers(struct ofpi_domain *domain, const uint32_t *threads);
/* Wake all sleeping waiters, so that they check their conditions. Cheap if no thread sleeps. */
void ofpi_domain_wake(struct ofpi_domain *domain);

#endif
