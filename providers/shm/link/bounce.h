/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_BOUNCE_H
#define SHM_BOUNCE_H

#include "shm.h"

struct shm_bounce_buffer {
    uint32_t generation;   /* generation of the last use */
    struct shm_link *user; /* the link that has yet to return the buffer; NULL: free */
    bool fragment;         /* a fragment of a message with a receive; otherwise a whole message */
    /* Of a part of a remote operation; request.c. */
    uint64_t pending; /* id of the pending operation; 0: no remote operation */
    uint64_t offset;
    uint32_t length, payload; /* bytes, and offset in the buffer */
    /* Fragment: the peer returns the buffer before it frees this slot. NULL: no fragment. */
    const struct shm_slot *slot;
    uint64_t slot_state;
};
int shm_bounce_open(struct shm_endpoint *endpoint);
void shm_bounce_close(struct shm_endpoint *endpoint);
/* Allocate a buffer for this link: its index, or -EAGAIN, or -ENOMEM if the machine cannot back the buffers. */
int shm_bounce_allocate(struct shm_link *link, bool fragment);
/* 0, or the error with which an allocation would fail, if the machine has memory for the buffers. Collects returned ones. */
int shm_bounce_check(struct shm_link *link, bool fragment);
static inline char *shm_bounce_resolve(const struct shm_segment *segment, uint32_t index)
{
    return segment->bounce_buffers + (size_t)index * segment->bounce_size;
}
/*
 * Collect returned buffers, with the ordered loads that the sleep handshake needs. True: shm_bounce_allocate would find
 * a buffer for a fragment.
 */
bool shm_bounce_collect(struct shm_link *link);
/* Put a buffer of ours back into the pool. */
void shm_bounce_free(struct shm_endpoint *endpoint, uint32_t index);
/* Free all buffers of a link that ends. */
void shm_bounce_reclaim(struct shm_link *link);
/*
 * Free buffers of fragments whose slot the peer has freed although the state word says otherwise, since that word was
 * overwritten.
 */
void shm_bounce_repair(struct shm_endpoint *endpoint);
/* Free all buffers: the segment is replaced. */
void shm_bounce_clear(struct shm_endpoint *endpoint);
/* Whether the buffer that a slot names exists in the sender's segment and can contain `length` bytes. */
bool shm_bounce_is_valid(const struct shm_link *link, const struct shm_bounce_fields *fields, uint64_t length);
/* Receiver: return the buffer to the sender. `wake`: wake the sender if it sleeps, since it may wait for the buffer. */
void shm_bounce_return(struct shm_link *link, const struct shm_bounce_fields *fields, bool wake);

#endif
