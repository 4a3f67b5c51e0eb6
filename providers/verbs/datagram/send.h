/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DATAGRAM_SEND_H
#define VERBS_DATAGRAM_SEND_H

#include "datagram/datagram.h"

int verbs_datagram_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* The device has done with the one of this number, and with all before it. */
void verbs_datagram_sent(struct verbs_datagram *endpoint, uint32_t number);
/* None of them is under way any more. */
void verbs_datagram_sends_fail(struct verbs_datagram *endpoint, int error, int provider_error);
/* The same, and the core ends the operations itself. */
void verbs_datagram_sends_discard(struct verbs_datagram *endpoint);
static inline bool verbs_datagram_is_idle(const struct verbs_datagram *endpoint)
{
    return verbs_send_queue_is_empty(&endpoint->queue);
}

#endif
