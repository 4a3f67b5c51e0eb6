/* SPDX-License-Identifier: BSD-3-Clause */
/* How unexpected messages are found: by order of arrival, by an index for each class of receive, or set aside. */
#include <errno.h>

#include "base/slab.h"
#include "base/check.h"
#include "match/match_index.h"
#include "match/selector.h"
#include "match/unexpected.h"
#include "object/owner.h"

static struct ofpi_unexpected *message_of_order_node(struct ofp_list *node)
{
    return OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);
}

/* ----------------------------------------------------------------------------------------------- nodes and classes */

/* Allocate the nodes that the message needs for this many classes. Nodes that it has stay. */
static int reserve_nodes(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message, uint32_t classes)
{
    struct ofpi_extra_node **end = &message->extra;

    if (message->extra_count + OFPI_INLINE_NODES >= classes)
        return 0;
    while (*end)
        end = &(*end)->next;
    while (message->extra_count + OFPI_INLINE_NODES < classes) {
        *end = ofpi_slab_allocate(&unexpected->extra_slab);
        if (!*end)
            return -ENOMEM;
        (*end)->message = message;
        (*end)->next = NULL;
        end = &(*end)->next;
        message->extra_count++;
    }
    return 0;
}

static struct ofpi_match_node *find_node_of_class(struct ofpi_unexpected *message, uint32_t class)
{
    struct ofpi_extra_node *extra = message->extra;

    if (class == 0)
        return &message->first;
    if (class == 1)
        return &message->second;
    for (uint32_t i = OFPI_INLINE_NODES; i < class; i++)
        extra = extra->next;
    return &extra->node;
}

static struct ofpi_unexpected *message_of_class_node(struct ofpi_match_node *node, uint32_t class)
{
    if (!node)
        return NULL;
    if (class == 0)
        return OFP_CONTAINER_OF(node, struct ofpi_unexpected, first);
    if (class == 1)
        return OFP_CONTAINER_OF(node, struct ofpi_unexpected, second);
    return OFP_CONTAINER_OF(node, struct ofpi_extra_node, node)->message;
}

static void insert_class_node(struct ofpi_unexpected_class *class, const struct ofpi_unexpected *message,
                              struct ofpi_match_node *node)
{
    node->key = ofpi_message_key_build(message->channel, message->tag, message->source, class->ignore, class->named);
    node->sequence = message->first.sequence;
    ofpi_match_index_insert(&class->index, node);
}

static void insert_in_all_classes(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    struct ofpi_extra_node *extra = message->extra;

    insert_class_node(&unexpected->classes[0], message, &message->first);
    if (unexpected->class_count > 1)
        insert_class_node(&unexpected->classes[1], message, &message->second);
    for (uint32_t i = OFPI_INLINE_NODES; i < unexpected->class_count; i++, extra = extra->next)
        insert_class_node(&unexpected->classes[i], message, &extra->node);
}

static void remove_from_all_classes(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    struct ofpi_extra_node *extra = message->extra;

    ofpi_match_index_remove(&unexpected->classes[0].index, &message->first);
    if (unexpected->class_count > 1)
        ofpi_match_index_remove(&unexpected->classes[1].index, &message->second);
    for (uint32_t i = OFPI_INLINE_NODES; i < unexpected->class_count; i++, extra = extra->next)
        ofpi_match_index_remove(&unexpected->classes[i].index, &extra->node);
}

/* Add a class when the first receive needs it: insert every waiting message into its index. NULL: out of memory. */
static struct ofpi_unexpected_class *add_unexpected_class(struct ofpi_unexpected_messages *unexpected, uint64_t ignore,
                                                          bool named)
{
    struct ofpi_unexpected_class *class = &unexpected->classes[unexpected->class_count];
    struct ofp_list *node, *following;

    /*
     * Allocate first, so that no index is incomplete. If memory is short, a later call uses the nodes allocated here.
     */
    OFP_LIST_EACH(node, following, &unexpected->order) {
        if (reserve_nodes(unexpected, message_of_order_node(node), unexpected->class_count + 1))
            return NULL;
    }
    if (ofpi_match_index_open(&class->index, unexpected->classes[0].index.seed))
        return NULL;
    class->ignore = ignore;
    class->named = named;
    OFP_LIST_EACH(node, following, &unexpected->order)
        insert_class_node(class, message_of_order_node(node),
                          find_node_of_class(message_of_order_node(node), unexpected->class_count));
    unexpected->class_count++;
    return class;
}

static struct ofpi_unexpected_class *find_or_add_class(struct ofpi_unexpected_messages *unexpected, uint64_t ignore,
                                                       bool named)
{
    for (uint32_t i = 0; i < unexpected->class_count; i++) {
        if (unexpected->classes[i].ignore == ignore && unexpected->classes[i].named == named)
            return &unexpected->classes[i];
    }
    return unexpected->class_count < OFPI_UNEXPECTED_CLASSES ? add_unexpected_class(unexpected, ignore, named) : NULL;
}

/* `incarnation`: of the sender; 0: any. */
static struct ofpi_unexpected *find_in_arrival_order(struct ofpi_unexpected_messages *unexpected,
                                                     const struct ofpi_selector *selector, uint32_t incarnation)
{
    struct ofpi_match_key wanted = ofpi_key_of_selector(selector);
    bool named = selector->source != OFP_PEER_ANY;
    struct ofp_list *node, *following;

    unexpected->linear_searches++;
    OFP_LIST_EACH(node, following, &unexpected->order) {
        struct ofpi_unexpected *message = message_of_order_node(node);
        struct ofpi_match_key key =
            ofpi_message_key_build(message->channel, message->tag, message->source, selector->ignore, named);

        if (key.tag == wanted.tag && key.origin == wanted.origin &&
            (!incarnation || message->incarnation == incarnation))
            return message;
    }
    return NULL;
}

struct ofpi_unexpected *ofpi_unexpected_find(struct ofpi_unexpected_messages *unexpected,
                                             const struct ofpi_selector *selector)
{
    struct ofpi_unexpected_class *class;

    if (!unexpected->waiting)
        return NULL;
    class = find_or_add_class(unexpected, selector->ignore, selector->source != OFP_PEER_ANY);
    if (!class)
        return find_in_arrival_order(unexpected, selector, 0);
    return message_of_class_node(ofpi_match_index_find(&class->index, ofpi_key_of_selector(selector)),
                                 (uint32_t)(class - unexpected->classes));
}

/* Messages with one key are a ring in the order of arrival: those of ended incarnations come first. */
struct ofpi_unexpected *ofpi_unexpected_find_bound(struct ofpi_unexpected_messages *unexpected,
                                                   const struct ofpi_selector *selector, uint32_t incarnation)
{
    struct ofpi_unexpected_class *class;
    struct ofpi_match_node *head, *node;

    OFPI_CHECK(selector->source != OFP_PEER_ANY);
    if (!unexpected->waiting || !incarnation)
        return NULL;
    class = find_or_add_class(unexpected, selector->ignore, true);
    if (!class)
        return find_in_arrival_order(unexpected, selector, incarnation);
    head = node = ofpi_match_index_find(&class->index, ofpi_key_of_selector(selector));
    while (node) {
        struct ofpi_unexpected *message = message_of_class_node(node, (uint32_t)(class - unexpected->classes));

        if (message->incarnation == incarnation)
            return message;
        node = node->same_next == head ? NULL : node->same_next;
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------------------- the two states */

/* Insert by sequence, usually at the end. A returned message is old: search for its place from the front. */
static void insert_in_order(struct ofp_list *order, struct ofpi_unexpected *message)
{
    struct ofp_list *position = order->previous;

    if (!ofp_list_empty(order) && message_of_order_node(position)->first.sequence > message->first.sequence) {
        position = order;
        while (message_of_order_node(position->next)->first.sequence < message->first.sequence)
            position = position->next;
    }
    ofp_list_insert_after(position, &message->order);
}

static void insert_waiting(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    OFPI_CHECK(!message->set_aside);
    insert_in_order(&unexpected->order, message);
    insert_in_all_classes(unexpected, message);
    unexpected->waiting++;
}

int ofpi_unexpected_insert(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    int result = reserve_nodes(unexpected, message, unexpected->class_count);

    if (!result)
        insert_waiting(unexpected, message);
    return result;
}

int ofpi_unexpected_return(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    /* Allocate first: nothing below can fail. */
    int result = reserve_nodes(unexpected, message, unexpected->class_count);

    if (result)
        return result;
    ofpi_unexpected_detach(unexpected, message);
    insert_waiting(unexpected, message);
    return 0;
}

static struct ofpi_match_key build_set_aside_key(const struct ofp_endpoint *endpoint, uint64_t op_context,
                                                 uint64_t op_flags)
{
    uint64_t bits, context = ofpi_owner_find_innermost(op_context, op_flags, &bits);

    return (struct ofpi_match_key){context, ofpi_match_origin_build(bits == OFPI_REQUEST, endpoint->id)};
}

bool ofpi_unexpected_is_of_request(const struct ofpi_unexpected *message)
{
    /* build_set_aside_key stores in the upper half whether the owner is a request. */
    return message->set_aside && message->first.key.origin >> 32;
}

void ofpi_unexpected_set_aside(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                               const struct ofp_endpoint *endpoint, uint64_t op_context, uint64_t op_flags)
{
    OFPI_CHECK(!message->set_aside);
    message->set_aside = true;
    message->first.key = build_set_aside_key(endpoint, op_context, op_flags);
    ofpi_match_index_insert(&unexpected->set_aside_index, &message->first);
    ofp_list_append(&unexpected->set_aside, &message->order);
}

struct ofpi_unexpected *ofpi_unexpected_find_set_aside(const struct ofpi_unexpected_messages *unexpected,
                                                       const struct ofp_endpoint *endpoint, uint64_t op_context,
                                                       uint64_t op_flags)
{
    return message_of_class_node(
        ofpi_match_index_find(&unexpected->set_aside_index, build_set_aside_key(endpoint, op_context, op_flags)), 0);
}

void ofpi_unexpected_detach(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    OFPI_CHECK(message->set_aside || unexpected->waiting);
    ofp_list_remove(&message->order);
    if (message->set_aside) {
        message->set_aside = false;
        ofpi_match_index_remove(&unexpected->set_aside_index, &message->first);
        return;
    }
    remove_from_all_classes(unexpected, message);
    unexpected->waiting--;
}
