/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages, writes, reads and atomics of connected endpoints. */
#ifndef VERBS_SEND_H
#define VERBS_SEND_H

#include "objects.h"

/* Whether an inline or copied write has completed before its end was reported. */
bool verbs_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there);
int verbs_send_post(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* Post the chain. */
void verbs_sends_flush(struct verbs_endpoint *endpoint);
/* The device has completed every work request before this number. */
void verbs_sends_ended(struct verbs_endpoint *endpoint, uint64_t number);
/* The operation of this number has failed; all before it have succeeded. */
void verbs_send_failed(struct verbs_endpoint *endpoint, uint64_t number, int error, int provider_error);
/* Post more pieces of a long operation. Returns whether it posted any. */
bool verbs_sends_resume(struct verbs_endpoint *endpoint);
/*
 * Whether everything has arrived. The first call posts the goodbye, and nothing may be posted after it. An endpoint
 * that closed before the acknowledgement could remove its device too early, and the peer's sends, which arrived, would
 * end with an error.
 */
bool verbs_sends_drain(struct verbs_endpoint *endpoint);
/* The queue is gone; free its contents. */
void verbs_sends_discard(struct verbs_endpoint *endpoint);

#endif
