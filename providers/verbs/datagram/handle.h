/* SPDX-License-Identifier: BSD-3-Clause */
/* How packets find their way: GIDs of this end, and what a handle is made of, one for each peer. */
#ifndef VERBS_DATAGRAM_HANDLE_H
#define VERBS_DATAGRAM_HANDLE_H

#include "datagram/datagram.h"

/* Write GID, number of the subnet and partition of the own address. -ENODEV: the port has no such GID. */
int verbs_datagram_address_fill(struct verbs_datagram *endpoint);
struct ibv_ah_attr verbs_datagram_handle_build(const struct verbs_datagram *endpoint,
                                               const struct verbs_datagram_address *to);

#endif
