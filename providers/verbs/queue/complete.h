/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: what the device has done. */
#ifndef VERBS_COMPLETE_H
#define VERBS_COMPLETE_H

#include "objects.h"

/* Take what is there, at most a batch. Returns how many; the connection, and the queues, may be gone then. */
int verbs_pair_poll(struct verbs_endpoint *endpoint);
/* Take what the queue had when this began; the device may fill it again meanwhile. */
void verbs_pair_poll_all(struct verbs_endpoint *endpoint);
/* Ask to be told of the next one. False: something came meanwhile. */
bool verbs_pair_arm(struct verbs_endpoint *endpoint);
/* The domain's completion channel has something to tell. */
void verbs_completion_channel_handle(struct ofp_watch *watch, uint32_t events);

#endif
