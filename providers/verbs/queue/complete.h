/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of connected endpoints. */
#ifndef VERBS_COMPLETE_H
#define VERBS_COMPLETE_H

#include "objects.h"

/* Read at most a batch of completions. Returns their number. The connection, and its queues, may be closed then. */
int verbs_pair_poll(struct verbs_endpoint *endpoint);
/* Read the completions that the queue had at the start; the device may add more in the meantime. */
void verbs_pair_poll_all(struct verbs_endpoint *endpoint);
/* Arm the completion queue. Returns false if a completion arrived in the meantime. */
bool verbs_pair_arm(struct verbs_endpoint *endpoint);
/* Handle events of the domain's completion channel. */
void verbs_completion_channel_handle(struct ofp_watch *watch, uint32_t events);

#endif
