/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers of endpoints of type DGRAM. The bridge posts them to libfabric, and the core matches the messages, as
 * for every provider of ofipy. So receives can name a source, be of unknown size and receive many messages; an
 * unexpected message can be probed for, and is stored up to the core's bound. Datagrams are sent as other endpoints'
 * messages are.
 */
#ifndef OFI_BUFFERS_H
#define OFI_BUFFERS_H

#include "bridge.h"

/*
 * Guarded by the domain's lock; owned by the endpoint. They are posted at libfabric from the opening until its endpoint
 * is closed.
 */
struct bridge_receive_buffers {
    uint32_t count;
    size_t limit;                 /* bytes of a message; a buffer has one more, which shows that a message is longer */
    struct lf_context2 *contexts; /* the context of each buffer */
    char *memory;
};

/* Called when the endpoint is enabled. 0 or a negative errno; the buffers are freed with the endpoint. */
int bridge_receive_buffers_open(struct ofp_endpoint *endpoint);
/* Called after libfabric's endpoint is closed. NULL: there are none. */
void bridge_receive_buffers_free(struct bridge_receive_buffers *buffers);

/* Whether the context of a completion belongs to a receive buffer. */
static inline bool bridge_context_is_buffer(const struct bridge_receive_buffers *buffers, const void *context)
{
    uintptr_t first = (uintptr_t)buffers->contexts, at = (uintptr_t)context;

    return at >= first && at < first + buffers->count * sizeof(*buffers->contexts);
}

/*
 * A receive buffer's completion: deliver the message to the core, and post the buffer again. `source`: libfabric's
 * number.
 */
void bridge_datagram_arrived(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source,
                             int error);

#endif
