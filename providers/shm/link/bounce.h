/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_BOUNCE_H
#define SHM_BOUNCE_H

#include "shm.h"

struct shm_bounce_buffer {
    uint32_t generation;   /* of its last use */
    struct shm_link *user; /* who has yet to free it; NULL: it is free */
    bool fragment;         /* of a message whose receive is there; otherwise a whole message */
    /* Of a part of a remote operation; request.c. */
    uint64_t pending; /* its id; 0: another use */
    uint64_t offset;
    uint32_t length, payload; /* bytes, and where in the buffer */
    /* Of a fragment: who frees that slot has given back the buffer. Otherwise NULL. */
    const struct shm_slot *slot;
    uint64_t slot_state;
};
int shm_bounce_open(struct shm_endpoint *endpoint);
void shm_bounce_close(struct shm_endpoint *endpoint);
/* A free buffer for this link: its index, or -EAGAIN, or -ENOMEM when the machine cannot back the buffers. */
int shm_bounce_allocate(struct shm_link *link, bool fragment);
static inline char *shm_bounce_resolve(const struct shm_segment *segment, uint32_t index)
{
    return segment->bounce_buffers + (size_t)index * segment->bounce_size;
}
/* Whether shm_bounce_allocate would find one for a fragment. Looks at the buffers' states in the order that sleeping asks for. */
bool shm_bounce_collect(struct shm_link *link);
/* Not sent after all. */
void shm_bounce_free(struct shm_endpoint *endpoint, uint32_t index);
/* The holder is gone. */
void shm_bounce_reclaim(struct shm_link *link);
/* Take back what was given back and does not look so, since its state word was overwritten. */
void shm_bounce_repair(struct shm_endpoint *endpoint);
/* All holders are, and the memory with them. */
void shm_bounce_clear(struct shm_endpoint *endpoint);
/* Whether a fields' buffer exists in the sender's segment and can hold that much. */
bool shm_bounce_is_valid(const struct shm_link *link, const struct shm_bounce_fields *fields, uint64_t length);
/* Receiver: the buffer is the sender's again. Wake it if it sleeps: it may wait for that. */
void shm_bounce_return(struct shm_link *link, const struct shm_bounce_fields *fields, bool wake);

#endif
