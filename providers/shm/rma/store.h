/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies into mapped memory of a peer, by the stores that are fastest at present. */
#ifndef SHM_STORE_H
#define SHM_STORE_H

#include <stdint.h>
#include <sys/uio.h>

struct shm_link;

/* The measured costs of one link. NULL while it has written no large block; freed with the link. */
struct shm_stores;

/*
 * Copy `length` bytes between two lists of pieces with that total. `to` is memory of the link's peer. Both lists are
 * used up. Called under the domain's lock.
 */
void shm_store_pieces(struct shm_link *link, struct iovec *to, struct iovec *from, uint64_t length);

#endif
