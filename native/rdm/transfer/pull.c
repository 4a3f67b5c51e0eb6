/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/hold.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"

/* What an announced message has in its provider_data. */
enum { DATA_PATH, DATA_KEPT, DATA_ID };

/* What is kept here of a message that no receive has matched: its payload, or where at the sender that lies. */
struct ofpi_rdm_kept {
    struct ofp_list node; /* path->announced */
    bool whole;
    uint32_t count;
    struct ofpi_rdm_piece pieces[]; /* or the payload */
};

/* What a receive under way has there. */
enum { RECEIVE_STATE, RECEIVE_ARRIVED, RECEIVE_HOLDS };
/* Values of RECEIVE_STATE. Of one that was called for by put fragments may come all the same. */
enum { RECEIVE_GETS = 1, RECEIVE_PUTS, RECEIVE_FRAGMENTS };

static struct ofp_message message_of(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet, uint64_t length)
{
    return (struct ofp_message){
        .peer = path->base.peer,
        .source = path->base.peer->index,
        .channel = packet->channel,
        .has_data = packet->flags & OFPI_RDM_HAS_DATA,
        .tag = packet->channel != OFP_CHANNEL_MESSAGE ? packet->tag : 0,
        .data = packet->data,
        .length = length,
        .provider_data = {[DATA_PATH] = (uint64_t)(uintptr_t)path, [DATA_ID] = packet->id},
    };
}

static struct ofpi_rdm_path *path_of(const struct ofp_receive *receive)
{
    return (struct ofpi_rdm_path *)(uintptr_t)receive->message.provider_data[DATA_PATH];
}

static struct ofpi_rdm_kept *kept_of(const struct ofp_message *message)
{
    return (struct ofpi_rdm_kept *)(uintptr_t)message->provider_data[DATA_KEPT];
}

static void kept_free(struct ofpi_rdm_kept *kept)
{
    if (!kept)
        return;
    ofp_list_remove(&kept->node);
    free(kept);
}

/* ------------------------------------------------------------------------------------------------------- the end */

static void receive_end(struct ofpi_rdm_path *path, struct ofp_receive *receive, int error)
{
    struct ofpi_rdm_packet done = {
        .kind = OFPI_RDM_DONE, .id = receive->message.provider_data[DATA_ID], .error = error};

    ofpi_rdm_let_go(path, (struct ofpi_rdm_holds *)(uintptr_t)receive->provider_data[RECEIVE_HOLDS]);
    ofpi_rdm_tell(path, &done);
    ofp_receive_complete(receive, error, 0);
}

static void have_got(struct ofpi_rdm_move *move, int error) { receive_end(move->path, move->owner, error); }

/* ------------------------------------------------------------------------------------------------- calling for it */

static bool get(struct ofpi_rdm_path *path, struct ofp_receive *receive, const struct ofpi_rdm_kept *kept)
{
    struct ofpi_rdm_holds *holds;

    if (!kept || !(path->base.channel->ops->properties & OFPI_CHANNEL_GET))
        return false;
    holds = ofpi_rdm_hold(path, receive->iov, receive->regions, receive->iov_count, receive->length, OFP_ACCESS_RECV);
    if (!holds)
        return false;
    receive->provider_data[RECEIVE_STATE] = RECEIVE_GETS;
    if (ofpi_rdm_move(path, false, holds, kept->pieces, kept->count, have_got, receive) == 0)
        return true;
    ofpi_rdm_let_go(path, holds);
    return false;
}

static void call_for(struct ofpi_rdm_path *path, struct ofp_receive *receive)
{
    struct ofpi_rdm_packet pull = {.kind = OFPI_RDM_PULL,
                                   .id = receive->message.provider_data[DATA_ID],
                                   .receive = receive->id,
                                   .length = receive->length};
    struct ofpi_rdm_holds *holds = NULL;

    if ((path->base.channel->ops->properties & (OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT)) == OFPI_CHANNEL_PUT)
        holds = ofpi_rdm_hold(path, receive->iov, receive->regions, receive->iov_count, receive->length,
                              OFP_ACCESS_REMOTE_WRITE);
    ofpi_rdm_describe(holds, &pull);
    receive->provider_data[RECEIVE_STATE] = holds ? RECEIVE_PUTS : RECEIVE_FRAGMENTS;
    receive->provider_data[RECEIVE_HOLDS] = (uint64_t)(uintptr_t)holds;
    ofpi_rdm_tell(path, &pull);
}

static void receive_whole(struct ofp_receive *receive, struct ofpi_rdm_kept *kept)
{
    if (receive->length)
        ofp_receive_write(receive, 0, kept->pieces, receive->length);
    kept_free(kept);
    ofp_receive_complete(receive, 0, 0);
}

void ofpi_rdm_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct ofpi_rdm_path *path = path_of(receive);
    struct ofpi_rdm_kept *kept = kept_of(&receive->message);

    /* Closed here: what the receive wanted went with its path. */
    if (!ofpi_rdm_endpoint_of(endpoint)->open) {
        ofp_receive_complete(receive, ECANCELED, 0);
        return;
    }
    if (kept && kept->whole) {
        receive_whole(receive, kept);
        return;
    }
    /* Of a path that is over the loss of the peer ends it. */
    if (path->state == OFPI_RDM_UP && !receive->length)
        receive_end(path, receive, 0);
    else if (path->state == OFPI_RDM_UP && !get(path, receive, kept))
        call_for(path, receive);
    kept_free(kept);
}

/* -------------------------------------------------------------------------------------------------------- messages */

static int announce(struct ofpi_rdm_path *path, struct ofp_message *message, struct ofpi_rdm_kept *kept)
{
    int result;

    /* In its list first: receive_start may be called from within. */
    if (kept)
        ofp_list_append(&path->announced, &kept->node);
    message->provider_data[DATA_KEPT] = (uint64_t)(uintptr_t)kept;
    result = ofp_message_announced(path->endpoint->base, message);
    if (result)
        kept_free(kept);
    return result ? -EAGAIN : 0;
}

int ofpi_rdm_take_eager(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_message message = message_of(path, packet, packet->payload_length);
    struct ofpi_rdm_kept *kept;
    int result = ofp_message_arrived(path->endpoint->base, &message, packet->payload);

    if (result != -EAGAIN)
        return result;
    /* Too much payload that nobody has received: the core still takes announcements. */
    kept = malloc(sizeof(*kept) + packet->payload_length);
    if (!kept)
        return -EAGAIN;
    *kept = (struct ofpi_rdm_kept){.whole = true};
    memcpy(kept->pieces, packet->payload, packet->payload_length);
    return announce(path, &message, kept);
}

/* Who waits for delivery has it fetched before a receive matches, if there is room. */
static bool fetch(struct ofpi_rdm_path *path, const struct ofp_message *message, const struct ofpi_rdm_kept *kept)
{
    struct ofp_receive *receive;

    if (ofp_message_begin(path->endpoint->base, message, OFP_ROOM_UNEXPECTED, &receive) != 0)
        return false;
    if (!receive->length)
        receive_end(path, receive, 0);
    else if (!get(path, receive, kept))
        call_for(path, receive);
    return true;
}

int ofpi_rdm_take_announcement(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_message message = message_of(path, packet, packet->length);
    struct ofpi_rdm_kept *kept = NULL;

    if (packet->count) {
        kept = calloc(1, sizeof(*kept) + packet->count * sizeof(kept->pieces[0]));
        if (!kept)
            return -EAGAIN;
        kept->count = packet->count;
        memcpy(kept->pieces, packet->pieces, packet->count * sizeof(kept->pieces[0]));
    }
    if (packet->flags & OFPI_RDM_FETCH && path->state == OFPI_RDM_UP && fetch(path, &message, kept)) {
        free(kept);
        return 0;
    }
    return announce(path, &message, kept);
}

/* --------------------------------------------------------------------------------------------------------- payload */

void ofpi_rdm_take_data(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_receive *receive = ofp_receive_find(path->base.peer, packet->receive);
    uint64_t *arrived;

    if (!receive || receive->provider_data[RECEIVE_STATE] < RECEIVE_PUTS ||
        packet->offset != receive->provider_data[RECEIVE_ARRIVED] || !packet->payload_length ||
        packet->payload_length > receive->length - packet->offset) {
        ofpi_rdm_path_doom(path, EPROTO, "it sent a message that was not called for");
        return;
    }
    arrived = &receive->provider_data[RECEIVE_ARRIVED];
    ofp_receive_write(receive, packet->offset, packet->payload, packet->payload_length);
    *arrived += packet->payload_length;
    if (*arrived == receive->length)
        receive_end(path, receive, 0);
}

void ofpi_rdm_take_pushed(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_receive *receive = ofp_receive_find(path->base.peer, packet->receive);

    if (!receive || receive->provider_data[RECEIVE_STATE] != RECEIVE_PUTS || receive->provider_data[RECEIVE_ARRIVED]) {
        ofpi_rdm_path_doom(path, EPROTO, "it put a message that was not called for");
        return;
    }
    receive_end(path, receive, packet->error);
}
