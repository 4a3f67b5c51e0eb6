/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages, in the order of arrival, with an index for each class of receive that has been posted. The
 * receive context owns the messages. The domain's lock is held.
 *
 * A message is waiting (in the order and in every index, where any receive can match it), or set aside (found only by
 * the context value of the operation for which it is reserved), or neither: during a call, or while a receive in flight
 * owns it. Its payload is complete, or in flight into the message's memory (filling: receive_stream.c,
 * receive_fetch.c), or still with the sender (announced), or lost together with the sender. The message owns its
 * memory, or borrows it from a request's claim.
 */
#ifndef OFPI_UNEXPECTED_H
#define OFPI_UNEXPECTED_H

#include "base/slab.h"
#include "match/receiver.h"
#include "match/selector.h"

/* A payload of up to this many bytes is stored in the message itself. */
#define OFPI_SHORT_PAYLOAD 64
/* Once there are this many classes, a further mask has no index, and is searched for in the order of arrival. */
#define OFPI_UNEXPECTED_CLASSES 16
#define OFPI_INLINE_NODES 2u

/* A message's node in the index of a class from OFPI_INLINE_NODES on. Its nodes are a chain in the order of classes. */
struct ofpi_extra_node {
    struct ofpi_match_node node;
    struct ofpi_unexpected *message;
    struct ofpi_extra_node *next;
};

/* A lookup touches only the first cache line. The second is used only when there are at least two classes. */
struct ofpi_unexpected {
    struct ofpi_match_node first; /* in the index of class 0, or in set_aside_index */
    uint32_t source;
    uint8_t channel;
    uint8_t lane; /* of an announced message: message.spare[OFP_SPARE_WAY] */
    bool has_data : 1, announced : 1, set_aside : 1;
    bool borrowed : 1;             /* payload.borrowed_from owns the memory */
    bool bound : 1;                /* set aside for a receive with OFP_BOUND */
    uint8_t protocol;              /* of the message */
    struct ofpi_match_node second; /* in the index of class 1 */
    struct ofpi_extra_node *extra; /* extra_count nodes, also while set aside */
    struct ofp_list order;         /* in ofpi_unexpected_messages.order or .set_aside */
    uint64_t tag, data, length;
    struct ofp_endpoint *endpoint; /* the endpoint where the message arrived */
    union {
        struct ofp_peer *peer;         /* of an announced message; NULL once the peer is lost */
        struct ofpi_inflight *filling; /* of any other: the receive in flight that still fills it, or NULL */
    };
    uint8_t extra_count;
    bool counted;         /* counted against the bound on announcements, although not announced */
    int16_t error;        /* why the payload is lost; 0: it is not lost */
    uint32_t incarnation; /* number of the sender's, in which it arrived; 0: unknown */
    union {
        char bytes[OFPI_SHORT_PAYLOAD];
        struct { /* longer payload */
            void *memory;
            struct ofpi_receiver borrowed_from; /* if `borrowed`: the claim that owns the memory */
        };
        struct { /* announced */
            uint64_t provider_data[6];
            struct ofp_list of_peer; /* in ofpi_peer.announced; zero without a peer */
        };
    } payload;
};
_Static_assert(sizeof(struct ofpi_unexpected) == 256, "the four groups are a cache line each");

struct ofpi_unexpected_class {
    uint64_t ignore;
    bool named;
    struct ofpi_match_index index;
};

struct ofpi_unexpected_messages {
    struct ofpi_unexpected_class classes[OFPI_UNEXPECTED_CLASSES]; /* the first: no mask, named source */
    uint32_t class_count;
    struct ofp_list order; /* waiting, oldest first */
    struct ofp_list set_aside;
    struct ofpi_match_index set_aside_index;
    uint64_t waiting; /* messages in `order` */
    uint64_t next_sequence;
    struct ofpi_slab slab, extra_slab;

    /*
     * Two bounds: one on the memory of messages that are not announced, payload and overhead, and one on the number of
     * announced messages, whose size is constant. A short message may be counted against the second bound although its
     * payload arrives with it (`counted`).
     */
    uint64_t memory_limit, announcement_limit;
    uint64_t memory;                     /* bytes that are counted against memory_limit */
    uint64_t messages, bytes, announced; /* messages, also set-aside ones; their payload; counted by the second bound */
    bool announce_only;                  /* set when `memory` reaches its bound, cleared when it is below half */
    uint64_t linear_searches;
};

int ofpi_unexpected_open(struct ofpi_unexpected_messages *unexpected, const uint64_t seed[2], uint64_t memory_limit,
                         uint64_t announcement_limit);
void ofpi_unexpected_close(struct ofpi_unexpected_messages *unexpected);

/*
 * Store a message: a complete one, whose payload is copied, or an announced one, which has no payload yet. The message
 * is neither waiting nor set aside yet. `wanted`: a receive with OFP_HOLD has matched it. The number of posted receives
 * limits such messages, so a message without separate memory is then not checked against a bound. NULL: over a bound,
 * or out of memory.
 */
struct ofpi_unexpected *ofpi_unexpected_store(struct ofpi_unexpected_messages *unexpected,
                                              struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                              const void *payload, bool announced, bool wanted);
/* As ofpi_unexpected_store, for a message whose payload follows. The message counts against the bound `room`. */
struct ofpi_unexpected *ofpi_unexpected_reserve(struct ofpi_unexpected_messages *unexpected,
                                                struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                enum ofp_room room, bool wanted);
/*
 * Prepare an announced message for its payload. The message borrows the memory of `borrowed_from`, which moves into it,
 * or (NULL) allocates its own within the bound. A short message contains its payload and never borrows. -ENOBUFS
 * (beyond the bound), -ENOMEM: nothing has changed.
 */
int ofpi_unexpected_allocate_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                                     const struct ofpi_receiver *borrowed_from);
/* Make the message waiting, at its place in the order of arrival. -ENOMEM: nothing has changed. */
int ofpi_unexpected_insert(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* Make a set-aside message waiting again. -ENOMEM: nothing has changed. */
int ofpi_unexpected_return(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* Set the message aside under the innermost owner of an operation of the endpoint. */
void ofpi_unexpected_set_aside(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                               const struct ofp_endpoint *endpoint, uint64_t op_context, uint64_t op_flags);
/* Whether the message is set aside for a request. */
bool ofpi_unexpected_is_of_request(const struct ofpi_unexpected *message);
/* Remove the message from the waiting or set-aside ones. */
void ofpi_unexpected_detach(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* The payload of an announced message is lost with its sender: a claim of the message ends with `error`. */
void ofpi_unexpected_mark_lost(struct ofpi_unexpected *message, int error);
/* Free a message that is neither waiting nor set aside. The caller releases borrowed memory. */
void ofpi_unexpected_free(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);

/* The first-arrived waiting message that matches, or NULL. It stays waiting. */
struct ofpi_unexpected *ofpi_unexpected_find(struct ofpi_unexpected_messages *unexpected,
                                             const struct ofpi_selector *selector);
/* The same, for a selector that names its source, among the messages of one incarnation of the source. */
struct ofpi_unexpected *ofpi_unexpected_find_bound(struct ofpi_unexpected_messages *unexpected,
                                                   const struct ofpi_selector *selector, uint32_t incarnation);
/* The first-arrived message that is set aside under this owner, or NULL. */
struct ofpi_unexpected *ofpi_unexpected_find_set_aside(const struct ofpi_unexpected_messages *unexpected,
                                                       const struct ofp_endpoint *endpoint, uint64_t op_context,
                                                       uint64_t op_flags);

/* Whether a receive in flight still fills the message. If so, it frees the message after ofpi_unexpected_detach. */
static inline bool ofpi_unexpected_is_filling(const struct ofpi_unexpected *kept)
{
    return !kept->announced && kept->filling;
}
/* The payload of a message that is not announced. */
static inline void *ofpi_payload_of_unexpected(struct ofpi_unexpected *message)
{
    return message->length > OFPI_SHORT_PAYLOAD ? message->payload.memory : message->payload.bytes;
}
/* The message as the provider reported it. */
struct ofp_message ofpi_message_of_unexpected(const struct ofpi_unexpected *message);

#endif
