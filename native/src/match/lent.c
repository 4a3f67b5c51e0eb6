/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/lent.h"

#include "base/check.h"
#include "base/pool.h"
#include "match/receiver.h"
#include "match/unexpected.h"
#include "object/peer.h"

void ofpi_lent_open(struct ofpi_lent_receives *lent)
{
    ofpi_pool_init(&lent->pool, sizeof(struct ofpi_lent));
    ofp_list_init(&lent->list);
}

void ofpi_lent_close(struct ofpi_lent_receives *lent) { ofpi_pool_fini(&lent->pool); }

struct ofpi_lent *ofpi_lent_take(struct ofpi_lent_receives *lent, struct ofpi_receive_context *context)
{
    uint64_t id;
    struct ofpi_lent *receive = ofpi_pool_take(&lent->pool, &id);

    if (!receive)
        return NULL;
    receive->base.id = id;
    receive->context = context;
    ofp_list_append(&lent->list, &receive->base.node);
    return receive;
}

void ofpi_lent_meet(struct ofpi_lent *receive, struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    receive->base.endpoint = receive->endpoint = endpoint;
    receive->base.message = *message;
    receive->peer = message->peer;
    if (message->peer)
        ofp_list_append(&((struct ofpi_peer *)message->peer)->receives, &receive->of_peer);
}

void ofpi_lent_set(struct ofpi_lent *receive, struct ofp_endpoint *endpoint, const struct ofp_message *message,
                   const struct ofpi_receiver *receiver)
{
    ofpi_lent_meet(receive, endpoint, message);
    if (receiver) {
        uint64_t room = receiver->memory.iov_len;

        receive->receiver = *receiver;
        receive->base.length = message->length < room ? message->length : room;
        receive->base.iov = ofpi_receiver_iov(&receive->receiver, &receive->base.iov_count);
        receive->base.regions = ofpi_receiver_regions(&receive->receiver);
    } else {
        receive->dropped = true;
    }
}

void ofpi_lent_start(struct ofpi_lent *receive, struct ofp_endpoint *endpoint, const struct ofp_message *message,
                     const struct ofpi_receiver *receiver)
{
    ofpi_lent_set(receive, endpoint, message, receiver);
    endpoint->ops->receive_start(endpoint, &receive->base);
}

void ofpi_lent_fill(struct ofpi_lent *receive, struct ofpi_unexpected *kept, struct ofp_endpoint *endpoint,
                    const struct ofp_message *message)
{
    static struct ofp_region *const unregistered[1];

    kept->filling = receive;
    receive->kept = kept;
    receive->memory = (struct iovec){ofpi_unexpected_payload(kept), message->length};
    ofpi_lent_meet(receive, endpoint, message);
    receive->base.length = message->length;
    receive->base.iov = &receive->memory;
    receive->base.iov_count = 1;
    receive->base.regions = kept->lent ? ofpi_receiver_regions(&kept->payload.lender) : unregistered;
}

void ofpi_lent_give(struct ofpi_lent_receives *lent, struct ofpi_lent *receive)
{
    OFPI_CHECK(ofp_list_linked(&receive->base.node));
    ofp_list_remove(&receive->base.node);
    if (ofp_list_linked(&receive->of_peer))
        ofp_list_remove(&receive->of_peer);
    ofpi_pool_give(&lent->pool, receive->base.id);
}
