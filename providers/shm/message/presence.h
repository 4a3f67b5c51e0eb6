/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a sender can be expected to bring the fragments that it was asked for.
 *
 * A sender shows that it is at work in two ways: its header counts its looks at its ring, and its fragments arrive. Both are kept for each link, not
 * for each message: the messages of a link leave one after the other, and a fragment of the first one is news of the sender for all.
 */
#ifndef SHM_PRESENCE_H
#define SHM_PRESENCE_H

#include "shm.h"

/* One more message waits for fragments of this link, and one fewer. */
void shm_presence_add_message(struct shm_link *link);
void shm_presence_remove_message(struct shm_link *link);
/* A fragment arrived, also one of a message that was fetched meanwhile. */
static inline void shm_presence_count_fragment(struct shm_link *link) { link->presence.fragments++; }
/*
 * False: do not wait any longer. `fetch`: the time that attach would take for what is missing, ns. The receiver waits for
 * about as long, so it takes at most twice as long as a receiver that knew how long the sender will be away.
 */
bool shm_presence_check(struct shm_link *link, uint64_t fetch);

#endif
