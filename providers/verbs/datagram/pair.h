/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair, completion queue and receive buffers of a datagram endpoint. */
#ifndef VERBS_DATAGRAM_PAIR_H
#define VERBS_DATAGRAM_PAIR_H

#include "datagram/datagram.h"

/* Open the queue pair, ready to send and receive. */
int verbs_datagram_pair_open(struct verbs_datagram *endpoint, char *text, size_t text_size);
/*
 * Reset the queue pair after it has failed, and start it again under the same number. Sends in flight end with
 * `error`.
 */
void verbs_datagram_pair_repair(struct verbs_datagram *endpoint, int error, int provider_error);
/* Close the queue pair and free its memory, which the device does not use any more. */
void verbs_datagram_pair_close(struct verbs_datagram *endpoint);

#endif
