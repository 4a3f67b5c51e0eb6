/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creates address handles in a thread of the domain's, without the domain's lock: on Ethernet the kernel resolves the
 * next hop when it creates a handle, and waits up to a second if the hop does not answer. The thread starts with the
 * first peer.
 */
#ifndef VERBS_FINDER_H
#define VERBS_FINDER_H

#include "datagram/datagram.h"

void verbs_finder_open(struct verbs_domain *domain);
/*
 * Start to create a handle. Later the peer is reported up with its handle, or lost. An error means that nothing was
 * started.
 */
int verbs_search_start(struct verbs_domain *domain, struct ofp_peer *peer, const struct ibv_ah_attr *attr);
/* The peer is not reported any more. */
void verbs_search_abandon(struct verbs_search *search);
/* End the thread and destroy all handles that were not delivered. The caller holds no lock. */
void verbs_finder_close(struct verbs_domain *domain);

#endif
