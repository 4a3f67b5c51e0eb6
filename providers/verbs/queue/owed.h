/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the send queue for which the device has reported no end. */
#ifndef VERBS_OWED_H
#define VERBS_OWED_H

#include "objects.h"

/* Whether an operation that its owner waits for is at the device. */
bool verbs_sends_are_awaited(const struct verbs_endpoint *endpoint);
/* How many operations that their owners take for done the device has not sent, or has no acknowledgement for. */
uint64_t verbs_sends_count_unsent(const struct verbs_endpoint *endpoint);

#endif
