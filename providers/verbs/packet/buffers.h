/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the packet buffers that a device never returns. It computes with numbers only; docs/explanation/verbs.md explains why it is
 * right.
 *
 * The device takes buffers in the order of posting, and each queue pair has at most one that is not complete. A queue pair that ends in
 * the middle of a message keeps its buffer. So each buffer at the device has the number of its post, and each queue pair a *horizon*:
 * every buffer that it has taken and not completed has a higher number. A buffer that was overtaken, as a later one has completed, and
 * that is below every horizon, is at no queue pair: it is lost, and may be posted again.
 *
 * More overtaken buffers than queue pairs: some are lost, though it is not known which. Buffers of the reserve are posted in their place.
 *
 * The owner's lock is held in every function.
 */
#ifndef VERBS_BUFFERS_H
#define VERBS_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ofipy/list.h"

struct verbs_buffer {
    struct ofp_list node; /* in `posted` or `reserve`; in no list: the user has it */
    uint64_t number;      /* of its last post, from 1 on */
};

/* A queue pair, from its creation until completions of it cannot follow any more. */
struct verbs_holder {
    struct ofp_list node; /* in `holders` */
    uint64_t horizon;
};

struct verbs_buffers {
    struct verbs_buffer *all;
    uint32_t count;     /* of all buffers that were added */
    uint32_t wanted;    /* buffers that are to be at the device or with the user, without the lost ones */
    uint32_t reserved;  /* buffers of the reserve */
    uint32_t overtaken; /* buffers at the device that a later one has overtaken */
    uint32_t holder_count;
    bool changed;            /* verbs_buffers_reclaim may find something, or another buffer is to be posted */
    struct ofp_list posted;  /* in the order of posting */
    struct ofp_list *fresh;  /* of them the first that is not overtaken; the list itself: none */
    struct ofp_list reserve; /* the last returned is first */
    struct ofp_list holders;
    uint64_t last_number;    /* of a post */
    uint64_t highest;        /* number of a completed buffer */
    uint64_t suspect_number; /* no buffer above it can be lost */
    uint64_t reclaimed;      /* lost buffers that returned to the reserve, so far */
};

/* `all` has space for every buffer, and is the caller's. */
void verbs_buffers_init(struct verbs_buffers *buffers, struct verbs_buffer *all, uint32_t wanted);
/* The user returns a buffer, or adds it. */
void verbs_buffers_return(struct verbs_buffers *buffers, uint32_t index);
/* Take a buffer that is to be posted now. Returns false if none is. */
bool verbs_buffers_pop(struct verbs_buffers *buffers, uint32_t *index);
/* The device returns a buffer, in the order of its completion queue. NULL: of a queue pair that is no holder any more. */
void verbs_buffers_complete(struct verbs_buffers *buffers, uint32_t index, struct verbs_holder *holder);

/* Before the queue pair is ready to receive. */
void verbs_holder_add(struct verbs_buffers *buffers, struct verbs_holder *holder);
/* The queue pair is destroyed, and every completion of it was read. */
void verbs_holder_remove(struct verbs_buffers *buffers, struct verbs_holder *holder);

/* Move the buffers that are certainly lost to the reserve. */
void verbs_buffers_reclaim(struct verbs_buffers *buffers);
/* Buffers that are at the device or with the user, without those that are known to be lost. */
uint32_t verbs_buffers_count_usable(const struct verbs_buffers *buffers);

#endif
