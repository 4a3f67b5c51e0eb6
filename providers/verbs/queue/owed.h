/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends that the device has not completed. */
#ifndef VERBS_OWED_H
#define VERBS_OWED_H

#include "objects.h"

/* Whether an operation that the core waits for is in flight. */
bool verbs_sends_are_awaited(const struct verbs_endpoint *endpoint);
/* The number of completed operations that the device has not sent, or without acknowledgement. */
uint64_t verbs_sends_count_unsent(const struct verbs_endpoint *endpoint);

#endif
