/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns of a collective: from one round to the next, to its end. The lock is held. */
#ifndef OFPI_COLLECTIVE_ADVANCE_H
#define OFPI_COLLECTIVE_ADVANCE_H

#include "collective/collective.h"

/* Take the first turn. The request runs, if it has one; otherwise this may free the collective. */
void ofpi_collective_start(struct ofpi_collective *collective);
/* Run the turns that are due; returns how many moved. Never call it from a provider's callback. */
int ofpi_turns_run(struct ofpi_domain *domain);
/* Finish the request, or complete the operation and free the collective. No transfer is in flight. */
void ofpi_collective_end(struct ofpi_collective *collective);

#endif
