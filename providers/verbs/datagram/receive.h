/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DATAGRAM_RECEIVE_H
#define VERBS_DATAGRAM_RECEIVE_H

#include "datagram/datagram.h"

/* Post all receive buffers. */
int verbs_datagram_buffers_post(struct verbs_datagram *endpoint);
/* Deliver the messages of a batch of completions, and post their buffers again. */
void verbs_datagram_arrived(struct verbs_datagram *endpoint, const struct ibv_wc *completions, int count);

#endif
