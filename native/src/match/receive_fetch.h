/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pulling the payload of an announced message that is set aside for a request.
 *
 * The request's claim pulls the payload into the memory of the claim. If the program does not claim the message soon, a
 * timer pulls the payload into the core's memory, within the bound on unexpected messages, so that the sender does not
 * wait for the program. A later claim copies from there.
 *
 * The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_FETCH_H
#define OFPI_RECEIVE_FETCH_H

#include "match/receive_state.h"

void ofpi_receive_pull_open(struct ofpi_receive_context *context, struct ofpi_domain *domain,
                            void (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer));
void ofpi_receive_pull_close(struct ofpi_receive_context *context);
/* An announced message has been set aside: start the timer. */
void ofpi_receive_pull_schedule(struct ofpi_receive_context *context);
/*
 * Pull the payload: into the memory of the claim `receiver`, or into the core's memory (NULL). The message stays set
 * aside. -ENOBUFS, -ENOMEM: nothing has changed. May call the provider.
 */
int ofpi_receive_pull(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                      const struct ofpi_receiver *receiver);

#endif
