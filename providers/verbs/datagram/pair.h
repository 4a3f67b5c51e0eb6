/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair, completion queue and rooms of a datagram endpoint. */
#ifndef VERBS_DATAGRAM_PAIR_H
#define VERBS_DATAGRAM_PAIR_H

#include "datagram/datagram.h"

/* Make them, ready to send and receive. */
int verbs_datagram_pair_open(struct verbs_datagram *endpoint, char *text, size_t text_size);
/* It has failed, which ends what was under way, with this error: begin anew, as the same queue pair. */
void verbs_datagram_pair_repair(struct verbs_datagram *endpoint, int error, int provider_error);
/* The device lets go of all memory. */
void verbs_datagram_pair_close(struct verbs_datagram *endpoint);

#endif
