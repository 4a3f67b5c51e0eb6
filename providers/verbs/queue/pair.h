/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair and completion queue of an endpoint, from their making to their end. */
#ifndef VERBS_PAIR_H
#define VERBS_PAIR_H

#include "objects.h"

/* Make them, ready for receives; the endpoint's id is at the domain's device. */
int verbs_pair_open(struct verbs_endpoint *endpoint, char *text, size_t text_size);
/* The other side is known to the connection manager: receive from it, send to it. */
int verbs_pair_connect(struct verbs_endpoint *endpoint);
/* The device lets go of all memory, and of the queues. Receives stay with the endpoint, none of them posted. */
void verbs_pair_close(struct verbs_endpoint *endpoint);

#endif
