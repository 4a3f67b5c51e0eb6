/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives, in the order in which they are posted, which is that of the device. As many as its queue holds are there; the
 * others wait here.
 */
#ifndef VERBS_RECEIVE_H
#define VERBS_RECEIVE_H

#include "objects.h"

int verbs_receive_post(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer);
/* What the device said of one of them: a message, or data of a write, which takes a receive and gives it back. */
void verbs_receive_ended(struct verbs_endpoint *endpoint, const struct ibv_wc *wc);
/* It failed, and the connection with it. */
void verbs_receive_failed(struct verbs_endpoint *endpoint, const struct ibv_wc *wc, int error);
/* Only what the device does not have can be taken back. */
int verbs_receive_cancel(struct ofp_endpoint *base, struct ofp_pending *pending);
/* The device has none of them any more. */
void verbs_receives_mark_unposted(struct verbs_endpoint *endpoint);
void verbs_receives_free(struct verbs_endpoint *endpoint);

#endif
