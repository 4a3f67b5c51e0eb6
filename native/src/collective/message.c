/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/message.h"

#include "base/check.h"
#include "match/receive_post.h"
#include "object/peer.h"
#include "operation/post.h"
#include "peer/peer_post.h"

_Static_assert(OFP_GROUP_LIMIT <= 1ull << (OFP_INTERNAL_TAG_BITS - 32), "a group's number fits in a tag");

/* The flags of all messages of groups. */
static uint64_t get_message_flags(uint16_t code) { return code == OFP_INTERNAL_SEND ? OFP_REMOTE_CQ_DATA : 0; }

/* A number of a collective that is used again after 2^31 others meets no message of the earlier one. */
static uint64_t build_tag(uint32_t number, uint64_t sequence)
{
    uint64_t low = sequence == OFPI_CONTROL_SEQUENCE ? sequence : sequence % OFPI_CONTROL_SEQUENCE;

    return (uint64_t)number << 32 | low;
}

/*
 * Tie a message to the incarnation of its member: a connection that drops and comes back may have lost messages, and
 * breaks the group. It is the one in which this member has first sent to the other, which must receive what was sent
 * before as well. Messages about the group go to whoever is there.
 */
static void bind_message(struct ofp_group *group, const struct ofpi_message *message, struct ofp_operation *op)
{
    const struct ofpi_peer *peer = ofpi_peer_find_at(group->endpoint, op->peer);
    uint32_t *number = &group->incarnations[message->rank];

    if (!*number && op->op == OFP_INTERNAL_SEND && peer && peer->base.state == OFP_PEER_UP)
        *number = peer->number;
    if (!*number)
        return;
    op->flags |= OFP_BOUND;
    op->reserved = *number;
}

int ofpi_message_post(struct ofp_group *group, const struct ofpi_message *message, struct ofpi_owner *owner)
{
    bool is_send = message->code == OFP_INTERNAL_SEND, is_any = message->rank == OFP_PEER_ANY;
    struct ofp_operation op = {
        .op = message->code,
        .peer = is_any ? OFP_PEER_ANY : group->peers[message->rank],
        .flags = get_message_flags(message->code) | message->flags | OFPI_REQUEST,
        .context = (uint64_t)(uintptr_t)message->context,
        .tag = build_tag(is_send ? group->numbers[message->rank] : group->number, message->sequence),
        .data = message->data,
        .offset = message->offset,
        .length = message->length,
        .region = message->region,
    };
    int result;

    OFPI_CHECK(is_any ? !is_send : message->rank < group->size && message->rank != group->rank);
    if (!is_send)
        op.ignore = message->ignore;
    if (message->sequence != OFPI_CONTROL_SEQUENCE && !is_any && ofpi_endpoint_has_incarnations(group->endpoint))
        bind_message(group, message, &op);
    ofpi_owner_enter(owner, &op);
    /* Messages of the program that fill the transmit queue must not stall a collective that others wait for. */
    group->endpoint->posts_beyond = true;
    result = ofpi_endpoint_post_due(group->endpoint, &op);
    group->endpoint->posts_beyond = false;
    return result;
}

void ofpi_messages_cancel(struct ofp_group *group, const void *context)
{
    struct ofpi_endpoint *endpoint = group->endpoint;
    uint64_t value = (uint64_t)(uintptr_t)context;
    int result = 0;

    while (endpoint->receive_context && !result)
        result = ofpi_receive_cancel(endpoint->receive_context, &endpoint->base, value, OFPI_REQUEST);
    ofpi_peers_cancel(endpoint, value, OFPI_REQUEST);
}
