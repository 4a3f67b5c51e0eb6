/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair and completion queue of a connected endpoint. */
#ifndef VERBS_PAIR_H
#define VERBS_PAIR_H

#include "objects.h"

/* Open them, ready for receives. The endpoint's id is at the domain's device. */
int verbs_pair_open(struct verbs_endpoint *endpoint, char *text, size_t text_size);
/* Connect the queue pair; the connection manager knows the peer's side. */
int verbs_pair_connect(struct verbs_endpoint *endpoint);
/* Close the queue pair; the device uses no memory any more. Receives stay with the endpoint, unposted. */
void verbs_pair_close(struct verbs_endpoint *endpoint);

#endif
