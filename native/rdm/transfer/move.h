/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets and puts of any length between memory in several pieces here and there, cut as the device wants it; and the device's
 * atomics, which are as one of them.
 */
#ifndef OFPI_RDM_MOVE_H
#define OFPI_RDM_MOVE_H

#include "rdm/transfer/registration.h"

struct ofpi_rdm_move {
    struct ofp_list node; /* path->moves, until it has ended and the channel has let go */
    struct ofpi_rdm_path *path;
    struct ofpi_rdm_registration *local; /* its own; let go at its end */
    struct ofpi_packet *packet; /* of an atomic, in place of `local`: for the result, free again behind `finish` */
    /*
     * Once, when every byte has moved or none will any more, unless the path was dropped before. `error`: 0 or
     * positive.
     */
    void (*finish)(struct ofpi_rdm_move *move, int error);
    void *owner; /* whatever `finish` needs */
    bool put;
    int error, provider_error;
    uint32_t in_flight; /* gets or puts that the channel has */
    uint64_t offset, length;
    struct ofpi_rdm_piece remote[]; /* of `length` bytes together at least, as local are */
};

/* Begin one; `local` becomes its own. -ENOMEM: it is still the caller's. */
int ofpi_rdm_move(struct ofpi_rdm_path *path, bool put, struct ofpi_rdm_registration *local,
                  const struct ofpi_rdm_piece *remote, uint32_t count,
                  void (*finish)(struct ofpi_rdm_move *move, int error), void *owner);
/* Begin an atomic; one packet can be sent. */
int ofpi_rdm_atomic_start(struct ofpi_rdm_path *path, const struct ofpi_word *word,
                          void (*finish)(struct ofpi_rdm_move *move, int error), void *owner);
/* What the channel had no room for. Returns how many gets and puts it took. */
int ofpi_rdm_moves_resume(struct ofpi_rdm_path *path);
void ofpi_rdm_moved(struct ofpi_path *path, void *cookie, int error, int provider_error);
/* The channel has let go of a path: so do we, of all memory. */
void ofpi_rdm_moves_end(struct ofpi_rdm_path *path);

#endif
