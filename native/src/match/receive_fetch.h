/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching the payload of an announced message that a request holds.
 *
 * The request's claim fetches it into the memory of the claim. A message that is not claimed soon, since the program
 * computes, is fetched into memory of the core's own, within the bound on unexpected messages: its sender does not wait for
 * the program. A claim that comes later copies.
 *
 * The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_FETCH_H
#define OFPI_RECEIVE_FETCH_H

#include "match/receive_state.h"

void ofpi_receive_pull_open(struct ofpi_receive_context *context, struct ofpi_domain *domain,
                            int (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer));
void ofpi_receive_pull_close(struct ofpi_receive_context *context);
/* An announced message has been set aside. */
void ofpi_receive_pull_schedule(struct ofpi_receive_context *context);
/*
 * Have the payload moved: into the claim that is `receiver`, or into memory of the core's own (NULL). The message stays set
 * aside. -ENOBUFS, -ENOMEM: nothing has changed. The provider may be called.
 */
int ofpi_receive_pull(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                      const struct ofpi_receiver *receiver);

#endif
