/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What endpoints of type DGRAM receive. Messages come into rooms of the bridge's own, which libfabric has posted, and the
 * core matches them, as it does for every provider of ours: so receives can name a source, be of unknown size and take many
 * messages, and a message without one can be probed for, and is kept up to the core's bound. What is sent goes the way of
 * all other endpoints' messages.
 */
#ifndef OFI_BUFFERS_H
#define OFI_BUFFERS_H

#include "bridge.h"

/* Guarded by the domain's lock, as the endpoint that owns them. They are libfabric's from the opening until that is closed. */
struct bridge_receive_buffers {
    uint32_t count;
    size_t limit;                 /* bytes of a message; a room has one more, by which a longer one shows */
    struct lf_context2 *contexts; /* what libfabric knows each by */
    char *memory;
};

/* The endpoint is enabled. 0 or a negative errno; what was made is freed with the endpoint. */
int bridge_receive_buffers_open(struct ofp_endpoint *endpoint);
/* After libfabric's endpoint is closed. NULL: there are none. */
void bridge_receive_buffers_free(struct bridge_receive_buffers *buffers);

/* Whether it is a room that a completion is of. */
static inline bool bridge_context_is_buffer(const struct bridge_receive_buffers *buffers, const void *context)
{
    uintptr_t first = (uintptr_t)buffers->contexts, at = (uintptr_t)context;

    return at >= first && at < first + buffers->count * sizeof(*buffers->contexts);
}

/* A room's completion: the message goes to the core, and the room back to libfabric. `source`: as libfabric numbers it. */
void bridge_datagram_arrived(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source,
                             int error);

#endif
