/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the payload of announced messages is, and how it is moved. */
#ifndef SHM_PULL_H
#define SHM_PULL_H

#include "shm.h"

/* What ofp_message.provider_data of an announced message holds. */
enum shm_place {
    SHM_PLACE_SENDER, /* at the sender: fetch it */
    SHM_PLACE_BOUNCE  /* in the sender's bounce buffer */
};
enum shm_message_data {
    SHM_DATA_PLACE, /* enum shm_place | iov_count << 8 | arena << 32 */
    SHM_DATA_ID,    /* FETCH: the sender's operation; BOUNCE: index << 32 | generation */
    SHM_DATA_ADDRESS,
    SHM_DATA_ARENA_OFFSET,
};

void shm_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive);
/* Move one piece of every message that is being fetched. Returns events handled. */
int shm_pulls_progress(struct shm_endpoint *endpoint);
void shm_pulls_free(struct shm_link *link);
/* Slots about payload that travels as fragments. False: the peer broke the protocol. */
bool shm_fragment_arrived(struct shm_link *link, const struct shm_content *content);
bool shm_abort_arrived(struct shm_link *link, const struct shm_content *content);

#endif
