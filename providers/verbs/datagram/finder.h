/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways to other hosts, off the domain's lock: on Ethernet the kernel looks for the next hop's address when it makes a handle, and
 * waits up to a second for one that does not answer. A thread of the domain's asks, from the first peer on.
 */
#ifndef VERBS_FINDER_H
#define VERBS_FINDER_H

#include "datagram/datagram.h"

void verbs_finder_open(struct verbs_domain *domain);
/* The peer is up with a handle later, or lost. What cannot begin is refused. */
int verbs_search_start(struct verbs_domain *domain, struct ofp_peer *peer, const struct ibv_ah_attr *attr);
/* Nobody is told any more. */
void verbs_search_abandon(struct verbs_search *search);
/* No handle is left. No lock is held. */
void verbs_finder_close(struct verbs_domain *domain);

#endif
