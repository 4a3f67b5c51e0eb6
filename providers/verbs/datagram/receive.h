/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DATAGRAM_RECEIVE_H
#define VERBS_DATAGRAM_RECEIVE_H

#include "datagram/datagram.h"

/* Have messages come into all rooms. */
int verbs_datagram_buffers_post(struct verbs_datagram *endpoint);
/* A batch of completions that are of rooms: hand the messages on, and the rooms back. */
void verbs_datagram_arrived(struct verbs_datagram *endpoint, const struct ibv_wc *completions, int count);

#endif
