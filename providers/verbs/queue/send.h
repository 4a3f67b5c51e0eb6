/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out: messages, writes, reads. */
#ifndef VERBS_SEND_H
#define VERBS_SEND_H

#include "objects.h"

int verbs_send_post(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* Hand the chain to the device. */
void verbs_sends_flush(struct verbs_endpoint *endpoint);
/* The device is done with every work request before this number. */
void verbs_sends_ended(struct verbs_endpoint *endpoint, uint64_t number);
/* The operation behind a number has failed; all before it have not. */
void verbs_send_failed(struct verbs_endpoint *endpoint, uint64_t number, int error, int provider_error);
/* Go on with what has more pieces than there was room for. Returns whether it did something. */
bool verbs_sends_resume(struct verbs_endpoint *endpoint);
/*
 * Whether everything that was posted has arrived; the first call says farewell to the other side, and nothing is posted any more.
 * Who left without an answer to that could take its device away between a message and its acknowledgement, and the other side's
 * sends, which came, would end with an error.
 */
bool verbs_sends_drain(struct verbs_endpoint *endpoint);
/* The queue is gone: forget what was in it. */
void verbs_sends_discard(struct verbs_endpoint *endpoint);

#endif
