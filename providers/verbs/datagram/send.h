/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DATAGRAM_SEND_H
#define VERBS_DATAGRAM_SEND_H

#include "datagram/datagram.h"

int verbs_datagram_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* The device has completed the send of this number, and all before it. */
void verbs_datagram_sent(struct verbs_datagram *endpoint, uint32_t number);
/* End all sends in flight with an error. */
void verbs_datagram_sends_fail(struct verbs_datagram *endpoint, int error, int provider_error);
/* Free all sends in flight; the core ends their operations. */
void verbs_datagram_sends_discard(struct verbs_datagram *endpoint);
static inline bool verbs_datagram_is_idle(const struct verbs_datagram *endpoint)
{
    return verbs_send_queue_is_empty(&endpoint->queue);
}

#endif
