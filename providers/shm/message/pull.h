/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of announced messages: the place of their payload, and its move. */
#ifndef SHM_PULL_H
#define SHM_PULL_H

#include "shm.h"

/* Contents of ofp_message.provider_data of an announced message. */
enum shm_place {
    SHM_PLACE_SENDER, /* in the sender's memory */
    SHM_PLACE_BOUNCE  /* in the sender's bounce buffer */
};
enum shm_message_data {
    SHM_DATA_PLACE, /* enum shm_place | iov_count << 8 | arena << 32 */
    SHM_DATA_ID,    /* SENDER: the sender's operation; BOUNCE: index << 32 | generation */
    SHM_DATA_ADDRESS,
    SHM_DATA_ARENA_OFFSET,
};

void shm_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive);
/* Move one piece of the first message in the list. Returns events handled. */
int shm_pulls_progress(struct shm_endpoint *endpoint);
void shm_pulls_free(struct shm_link *link);
/* Slots about payload that travels as fragments. False: the peer broke the protocol. */
bool shm_fragment_arrived(struct shm_link *link, const struct shm_content *content);
bool shm_abort_arrived(struct shm_link *link, const struct shm_content *content);

#endif
