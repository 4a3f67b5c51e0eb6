/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decision whether a receiver waits for the fragments that it requested. A sender shows activity in two ways: its
 * header counts its polls of its ring, and its fragments arrive. Both are recorded per link, not per message: the
 * messages of a link leave one after the other, so a fragment of the first one shows activity for all.
 */
#ifndef SHM_PRESENCE_H
#define SHM_PRESENCE_H

#include "shm.h"

/* One more, and one fewer, message waits for fragments of this link. */
void shm_presence_add_message(struct shm_link *link);
void shm_presence_remove_message(struct shm_link *link);
/* A fragment arrived, perhaps of a message that attach has moved meanwhile. */
static inline void shm_presence_count_fragment(struct shm_link *link) { link->presence.fragments++; }
/*
 * False: do not wait any longer. `fetch`: the time that attach would need for the missing bytes, ns. The receiver waits
 * for about as long, so it needs at most twice the time of a receiver that knew how long the sender will be away.
 */
bool shm_presence_check(struct shm_link *link, uint64_t fetch);

#endif
