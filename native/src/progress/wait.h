/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait. The domain's lock is held. */
#ifndef OFPI_WAIT_H
#define OFPI_WAIT_H

#include "object/domain.h"

int ofpi_wait_open(struct ofpi_domain *domain);
void ofpi_wait_close(struct ofpi_domain *domain);
typedef bool ofpi_condition(const void *argument);
/*
 * Wait with the lock held (it is released while asleep) until the condition holds, the time-out (ns, negative: none) or
 * one second passes, or a signal comes: 1, 0 or -EINTR. *expired: it was the caller's time-out.
 */
int ofpi_domain_wait(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, int64_t timeout,
                     bool *expired);
/*
 * Poll for so long (ns; 0: once), or until the condition holds; never asleep, whatever spinning brought before. Whether it
 * holds.
 */
bool ofpi_domain_spin(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, uint64_t duration);
/* Let go of the lock until *threads of those who wait have left; what they wait for has been made to hold. */
void ofpi_wait_for_leavers(struct ofpi_domain *domain, const uint32_t *threads);
/* Something that a sleeping thread may wait for has happened. Cheap when nobody sleeps. */
void ofpi_domain_wake(struct ofpi_domain *domain);

#endif
