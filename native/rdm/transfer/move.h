/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets and puts of any length between several pieces of local memory and several of the peer's, cut to the device's
 * limits; and the device's atomics, which are moves of one part.
 */
#ifndef OFPI_RDM_MOVE_H
#define OFPI_RDM_MOVE_H

#include "rdm/transfer/registration.h"

struct ofpi_rdm_move {
    struct ofp_list node; /* path->moves, until the move has ended and the channel has released it */
    struct ofpi_rdm_path *path;
    struct ofpi_rdm_registration *local; /* owned; deregistered at the end of the move */
    struct ofpi_packet
        *packet; /* of an atomic, instead of `local`: receives the old value; free again after `finish` */
    /*
     * Called once, when every byte has moved or none will any more, unless the path was abandoned before. `error`: 0
     * or positive.
     */
    void (*finish)(struct ofpi_rdm_move *move, int error);
    void *owner; /* context of `finish` */
    bool put;
    int error, provider_error;
    uint32_t in_flight; /* gets or puts of this move that the channel has */
    uint64_t offset, length;
    struct ofpi_rdm_piece remote[]; /* at least `length` bytes together, as is `local` */
};

/* Start a move, which then owns `local`. -ENOMEM: the caller still owns it. */
int ofpi_rdm_move(struct ofpi_rdm_path *path, bool put, struct ofpi_rdm_registration *local,
                  const struct ofpi_rdm_piece *remote, uint32_t count,
                  void (*finish)(struct ofpi_rdm_move *move, int error), void *owner);
/* Start an atomic. The caller has checked that a packet can be sent. */
int ofpi_rdm_atomic_start(struct ofpi_rdm_path *path, const struct ofpi_word *word,
                          void (*finish)(struct ofpi_rdm_move *move, int error), void *owner);
/* Resume moves for which the channel had no space. Returns how many gets and puts it accepted. */
int ofpi_rdm_moves_resume(struct ofpi_rdm_path *path);
void ofpi_rdm_moved(struct ofpi_path *path, void *cookie, int error, int provider_error);
/* The channel has closed the path: free all moves and registrations. */
void ofpi_rdm_moves_end(struct ofpi_rdm_path *path);

#endif
