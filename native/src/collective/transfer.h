/* SPDX-License-Identifier: BSD-3-Clause */
/* The transfers of one round: posted, counted when they end, and reduced where they landed. */
#ifndef OFPI_TRANSFER_H
#define OFPI_TRANSFER_H

#include "collective/collective.h"

/* Set the functions that are called when transfers end. */
void ofpi_transfers_init(struct ofpi_collective *collective);
/* Before the first round, and between two. */
void ofpi_transfers_clear(struct ofpi_collective *collective);
/*
 * Reduce one piece if one has landed, and post what can be posted. 1: all transfers of the round have ended, and all
 * pieces were reduced. 0: some are in flight. -EAGAIN: the transmit queue is full. -EINPROGRESS: it becomes due when it
 * can send more. Another error: the collective cannot continue.
 */
int ofpi_transfers_advance(struct ofpi_collective *collective, const struct ofpi_step *steps, int count);
/* Whether a piece has landed that is not reduced yet. */
bool ofpi_landing_is_full(const struct ofpi_collective *collective);
/* Cancel what can be cancelled. */
void ofpi_transfers_cancel(struct ofpi_collective *collective);
/* Where a place of the schedule is. */
static inline char *ofpi_address_of_place(const struct ofpi_collective *collective, struct ofpi_place place)
{
    return collective->buffers[place.buffer].address + place.offset;
}

#endif
