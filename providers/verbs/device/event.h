/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device tells unasked: of queues, of its port, of itself. The first is left with the queue, the others become events of
 * the domain.
 */
#ifndef VERBS_EVENT_H
#define VERBS_EVENT_H

#include "objects.h"

int verbs_events_open(struct verbs_domain *domain);
void verbs_events_close(struct verbs_domain *domain);

#endif
