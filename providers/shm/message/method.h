/* SPDX-License-Identifier: BSD-3-Clause */
/* Which copy methods are possible for an announced message, and which protocol a message would get. */
#ifndef SHM_METHOD_H
#define SHM_METHOD_H

#include "shm.h"

/* Whether the peer of a link sleeps. A hint: it may wake at any time. */
bool shm_sender_is_asleep(const struct shm_link *link);
/*
 * Bits of the possible methods, at least one. `mapped`: the sender's memory is mapped here; `attachable`: attach can read
 * that memory.
 */
uint32_t shm_methods_find(const struct shm_link *link, bool mapped, bool attachable);
/* As ofp_endpoint_ops.protocol_choose. */
bool shm_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                         struct ofp_protocol_choice *choice);

#endif
