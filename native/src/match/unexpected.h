/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages without a receive: kept in the order of arrival, and indexed once for every class of receive that ever
 * asked. Owned by the receive context; the domain's lock is held.
 *
 * A kept message is either waiting (in the order and in every index, to be found by any receive) or set aside (found
 * under the context value of the operation that claimed it, and by nothing else). Its payload is here, or on its way into
 * the memory for it (filling: receive_stream.c, receive_fetch.c), or still with the sender (announced), or lost together
 * with the sender. The memory is the message's own, or lent by the request that received it and gave it back.
 */
#ifndef OFPI_UNEXPECTED_H
#define OFPI_UNEXPECTED_H

#include "base/slab.h"
#include "match/receiver.h"
#include "match/selector.h"

/* Payload up to this lies in the message itself. */
#define OFPI_SHORT_PAYLOAD 64
/* Masks beyond these have no index and cost a search in order of arrival. */
#define OFPI_UNEXPECTED_CLASSES 16
#define OFPI_INLINE_NODES 2u

/* A message's node in the index of a class from OFPI_INLINE_NODES on; a chain in the order of the classes. */
struct ofpi_extra_node {
    struct ofpi_match_node node;
    struct ofpi_unexpected *message;
    struct ofpi_extra_node *next;
};

/* The first cache line is all that a lookup touches, the second is only used once there are two classes. */
struct ofpi_unexpected {
    struct ofpi_match_node first; /* in the index of class 0; of the set-aside ones while set aside */
    uint32_t source;
    uint8_t channel;
    uint8_t lane; /* announced: message.spare[OFP_SPARE_WAY] */
    bool has_data : 1, announced : 1, set_aside : 1;
    bool borrowed : 1;             /* its memory is payload.lender's */
    struct ofpi_match_node second; /* in the index of class 1 */
    struct ofpi_extra_node *extra; /* as many as extra_count, also while set aside */
    struct ofp_list order;         /* in ofpi_unexpected_messages.order or .set_aside */
    uint64_t tag, data, length;
    struct ofp_endpoint *endpoint; /* where it arrived */
    union {
        struct ofp_peer *peer;         /* of an announced message; NULL once the peer is lost */
        struct ofpi_inflight *filling; /* of any other: the stream that still fills it, or NULL */
    };
    uint16_t extra_count;
    bool counted;  /* held by the bound on announcements, although it is here */
    int32_t error; /* announced: why the payload is lost; 0: it is not */
    union {
        char bytes[OFPI_SHORT_PAYLOAD];
        struct { /* longer payload */
            void *memory;
            struct ofpi_receiver borrowed_from; /* lent: the claim of a request, whose memory it is */
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
     * Two bounds, each for a kind of its own: on the memory of messages that are here, payload and all else that they take,
     * and on the number of announced ones, whose size is always the same. A short message that is here, but has no room within the
     * first bound, may count among those.
     */
    uint64_t memory_limit, announcement_limit;
    uint64_t memory;                     /* bytes that the messages here take */
    uint64_t messages, bytes, announced; /* kept now, set aside included; bytes of payload; by the second bound */
    bool announce_only;                  /* memory has reached its bound and not fallen to half of it since */
    uint64_t linear_searches;
};

int ofpi_unexpected_open(struct ofpi_unexpected_messages *unexpected, const uint64_t seed[2], uint64_t memory_limit,
                         uint64_t announcement_limit);
void ofpi_unexpected_close(struct ofpi_unexpected_messages *unexpected);

/*
 * Keep a whole message, whose payload is copied (NULL: it follows), or an announced one, which has none. It is neither
 * waiting nor set aside yet. `wanted`: a receive claims it, and the number of receives is a bound already, so for what
 * takes no memory beside its own there is no other. NULL: over a bound, or out of memory.
 */
struct ofpi_unexpected *ofpi_unexpected_store(struct ofpi_unexpected_messages *unexpected,
                                              struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                              const void *payload, bool announced, bool wanted);
/* The same for a message whose payload follows, held to the bound that `room` names. */
struct ofpi_unexpected *ofpi_unexpected_reserve(struct ofpi_unexpected_messages *unexpected,
                                                struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                enum ofp_room room, bool wanted);
/*
 * An announced message is here from now on, and its payload follows: into the memory of `lender`, which moves into it, or of
 * its own, within the bound (NULL). Short ones have room inside, and no lender. -ENOBUFS: beyond the bound; -ENOMEM: nothing
 * has changed.
 */
int ofpi_unexpected_allocate_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                                     const struct ofpi_receiver *borrowed_from);
/* Into its place in the order of arrival. -ENOMEM: nothing has changed. */
int ofpi_unexpected_insert(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* The same from set aside. */
int ofpi_unexpected_return(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* Under the innermost owner of an operation of the endpoint. */
void ofpi_unexpected_set_aside(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                               const struct ofp_endpoint *endpoint, uint64_t op_context, uint64_t op_flags);
/* Whether it is set aside for a request. */
bool ofpi_unexpected_is_of_request(const struct ofpi_unexpected *message);
/* From waiting or set aside back to neither. */
void ofpi_unexpected_detach(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);
/* Its sender is gone, and the payload of an announced message with it: whoever receives it is told so. */
void ofpi_unexpected_mark_lost(struct ofpi_unexpected *message, int error);
/* Free a message that is neither; a lender is the caller's affair. */
void ofpi_unexpected_free(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message);

/* The waiting message that arrived first among those that match, or NULL. It stays where it is. */
struct ofpi_unexpected *ofpi_unexpected_find(struct ofpi_unexpected_messages *unexpected,
                                             const struct ofpi_selector *selector);
/* Of those set aside under this owner the one that arrived first, or NULL. */
struct ofpi_unexpected *ofpi_unexpected_find_set_aside(const struct ofpi_unexpected_messages *unexpected,
                                                       const struct ofp_endpoint *endpoint, uint64_t op_context,
                                                       uint64_t op_flags);

/* Whether a stream still fills a kept message; who takes one off the lists hands it to its `filling`. */
static inline bool ofpi_unexpected_is_filling(const struct ofpi_unexpected *kept)
{
    return !kept->announced && kept->filling;
}
/* The payload of a message that is whole. */
static inline void *ofpi_payload_of_unexpected(struct ofpi_unexpected *message)
{
    return message->length > OFPI_SHORT_PAYLOAD ? message->payload.memory : message->payload.bytes;
}
/* As the provider told it. */
struct ofp_message ofpi_message_of_unexpected(const struct ofpi_unexpected *message);

#endif
