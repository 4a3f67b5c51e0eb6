/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives, posted in order, which is also the device's order. The device has as many as its queue allows; the others
 * wait here.
 */
#ifndef VERBS_RECEIVE_H
#define VERBS_RECEIVE_H

#include "objects.h"

int verbs_receive_post(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer);
/*
 * Handles a completed receive: a message, or data of a write, which uses up a posted receive and returns it to the
 * queue.
 */
void verbs_receive_ended(struct verbs_endpoint *endpoint, const struct ibv_wc *wc);
/* The receive failed, and with it the connection. */
void verbs_receive_failed(struct verbs_endpoint *endpoint, const struct ibv_wc *wc, int error);
/* Only receives that the device does not have can be cancelled. */
int verbs_receive_cancel(struct ofp_endpoint *base, struct ofp_pending *pending);
/* The device has no receive any more. */
void verbs_receives_mark_unposted(struct verbs_endpoint *endpoint);
void verbs_receives_free(struct verbs_endpoint *endpoint);

#endif
