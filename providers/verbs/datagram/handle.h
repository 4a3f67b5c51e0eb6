/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: the endpoint's own GID, and the attributes of the handle of a peer. */
#ifndef VERBS_DATAGRAM_HANDLE_H
#define VERBS_DATAGRAM_HANDLE_H

#include "datagram/datagram.h"

/* Fill GID, LID and partition key of the endpoint's own address. -ENODEV: the port has no such GID. */
int verbs_datagram_address_fill(struct verbs_datagram *endpoint);
struct ibv_ah_attr verbs_datagram_handle_build(const struct verbs_datagram *endpoint,
                                               const struct verbs_datagram_address *to);

#endif
