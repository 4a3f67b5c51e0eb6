/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of a device. Events of a queue pair are stored in its context, those of the port and the device
 * become events of the domain.
 */
#ifndef VERBS_EVENT_H
#define VERBS_EVENT_H

#include "objects.h"

int verbs_events_open(struct verbs_domain *domain);
void verbs_events_close(struct verbs_domain *domain);

#endif
