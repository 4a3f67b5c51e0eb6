/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/registration.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"

/* What an announced message has in its provider_data. */
enum { DATA_PATH, DATA_STORED, DATA_ID };

/* What is kept here of a message that no receive has matched: its payload, or where at the sender that lies. */
struct ofpi_rdm_unexpected {
    struct ofp_list node; /* path->announced */
    bool whole;
    uint32_t count;
    struct ofpi_rdm_piece pieces[]; /* or the payload */
};

/* What a receive under way has there. */
enum { RECEIVE_STATE, RECEIVE_ARRIVED, RECEIVE_REGISTRATION };
/* Values of RECEIVE_STATE. Of one that was called for by put fragments may come all the same. */
enum { RECEIVE_GETS = 1, RECEIVE_PUTS, RECEIVE_FRAGMENTS };

static struct ofp_message build_message(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet,
                                        uint64_t length)
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

static struct ofpi_rdm_path *path_of_receive(const struct ofp_receive *receive)
{
    return (struct ofpi_rdm_path *)(uintptr_t)receive->message.provider_data[DATA_PATH];
}

static struct ofpi_rdm_unexpected *unexpected_of_message(const struct ofp_message *message)
{
    return (struct ofpi_rdm_unexpected *)(uintptr_t)message->provider_data[DATA_STORED];
}

static void free_stored_message(struct ofpi_rdm_unexpected *stored)
{
    if (!stored)
        return;
    ofp_list_remove(&stored->node);
    free(stored);
}

/* ------------------------------------------------------------------------------------------------------- the end */

static void end_receive(struct ofpi_rdm_path *path, struct ofp_receive *receive, int error)
{
    struct ofpi_rdm_packet done = {
        .kind = OFPI_RDM_DONE, .id = receive->message.provider_data[DATA_ID], .error = error};

    ofpi_rdm_memory_deregister(path,
                               (struct ofpi_rdm_registration *)(uintptr_t)receive->provider_data[RECEIVE_REGISTRATION]);
    ofpi_rdm_control_send(path, &done);
    ofp_receive_complete(receive, error, 0);
}

static void gets_finished(struct ofpi_rdm_move *move, int error) { end_receive(move->path, move->owner, error); }

/* ------------------------------------------------------------------------------------------------- calling for it */

static bool pull_by_device(struct ofpi_rdm_path *path, struct ofp_receive *receive,
                           const struct ofpi_rdm_unexpected *stored)
{
    struct ofpi_rdm_registration *registration;

    if (!stored || !(path->base.channel->ops->properties & OFPI_CHANNEL_GET))
        return false;
    registration = ofpi_rdm_memory_register(path, receive->iov, receive->regions, receive->iov_count, receive->length,
                                            OFP_ACCESS_RECV);
    if (!registration)
        return false;
    receive->provider_data[RECEIVE_STATE] = RECEIVE_GETS;
    if (ofpi_rdm_move(path, false, registration, stored->pieces, stored->count, gets_finished, receive) == 0)
        return true;
    ofpi_rdm_memory_deregister(path, registration);
    return false;
}

static void request_payload(struct ofpi_rdm_path *path, struct ofp_receive *receive)
{
    struct ofpi_rdm_packet pull = {.kind = OFPI_RDM_PULL,
                                   .id = receive->message.provider_data[DATA_ID],
                                   .receive = receive->id,
                                   .length = receive->length};
    struct ofpi_rdm_registration *registration = NULL;

    if ((path->base.channel->ops->properties & (OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT)) == OFPI_CHANNEL_PUT)
        registration = ofpi_rdm_memory_register(path, receive->iov, receive->regions, receive->iov_count,
                                                receive->length, OFP_ACCESS_REMOTE_WRITE);
    ofpi_rdm_registration_fill_pieces(registration, &pull);
    receive->provider_data[RECEIVE_STATE] = registration ? RECEIVE_PUTS : RECEIVE_FRAGMENTS;
    receive->provider_data[RECEIVE_REGISTRATION] = (uint64_t)(uintptr_t)registration;
    ofpi_rdm_control_send(path, &pull);
}

static void receive_stored_payload(struct ofp_receive *receive, struct ofpi_rdm_unexpected *stored)
{
    if (receive->length)
        ofp_receive_write(receive, 0, stored->pieces, receive->length);
    free_stored_message(stored);
    ofp_receive_complete(receive, 0, 0);
}

void ofpi_rdm_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct ofpi_rdm_path *path = path_of_receive(receive);
    struct ofpi_rdm_unexpected *stored = unexpected_of_message(&receive->message);

    /* Closed here: what the receive wanted went with its path. */
    if (!ofpi_rdm_endpoint_of(endpoint)->open) {
        ofp_receive_complete(receive, ECANCELED, 0);
        return;
    }
    if (stored && stored->whole) {
        receive_stored_payload(receive, stored);
        return;
    }
    /* Of a path that is over the loss of the peer ends it. */
    if (path->state == OFPI_RDM_UP && !receive->length)
        end_receive(path, receive, 0);
    else if (path->state == OFPI_RDM_UP && !pull_by_device(path, receive, stored))
        request_payload(path, receive);
    free_stored_message(stored);
}

/* -------------------------------------------------------------------------------------------------------- messages */

static int announce_to_core(struct ofpi_rdm_path *path, struct ofp_message *message, struct ofpi_rdm_unexpected *stored)
{
    int result;

    /* In its list first: receive_start may be called from within. */
    if (stored)
        ofp_list_append(&path->announced, &stored->node);
    message->provider_data[DATA_STORED] = (uint64_t)(uintptr_t)stored;
    result = ofp_message_announced(path->endpoint->base, message);
    if (result)
        free_stored_message(stored);
    return result ? -EAGAIN : 0;
}

int ofpi_rdm_eager_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_message message = build_message(path, packet, packet->payload_length);
    struct ofpi_rdm_unexpected *stored;
    int result = ofp_message_arrived(path->endpoint->base, &message, packet->payload);

    if (result != -EAGAIN)
        return result;
    /* Too much payload that nobody has received: the core still takes announcements. */
    stored = malloc(sizeof(*stored) + packet->payload_length);
    if (!stored)
        return -EAGAIN;
    *stored = (struct ofpi_rdm_unexpected){.whole = true};
    memcpy(stored->pieces, packet->payload, packet->payload_length);
    return announce_to_core(path, &message, stored);
}

/* Who waits for delivery has it fetched before a receive matches, if there is room. */
static bool pull_before_match(struct ofpi_rdm_path *path, const struct ofp_message *message,
                              const struct ofpi_rdm_unexpected *stored)
{
    struct ofp_receive *receive;

    if (ofp_message_begin(path->endpoint->base, message, OFP_ROOM_UNEXPECTED, &receive) != 0)
        return false;
    if (!receive->length)
        end_receive(path, receive, 0);
    else if (!pull_by_device(path, receive, stored))
        request_payload(path, receive);
    return true;
}

int ofpi_rdm_announcement_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_message message = build_message(path, packet, packet->length);
    struct ofpi_rdm_unexpected *stored = NULL;

    if (packet->count) {
        stored = calloc(1, sizeof(*stored) + packet->count * sizeof(stored->pieces[0]));
        if (!stored)
            return -EAGAIN;
        stored->count = packet->count;
        memcpy(stored->pieces, packet->pieces, packet->count * sizeof(stored->pieces[0]));
    }
    if (packet->flags & OFPI_RDM_FETCH && path->state == OFPI_RDM_UP && pull_before_match(path, &message, stored)) {
        free(stored);
        return 0;
    }
    return announce_to_core(path, &message, stored);
}

/* --------------------------------------------------------------------------------------------------------- payload */

void ofpi_rdm_data_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_receive *receive = ofp_receive_find(path->base.peer, packet->receive);
    uint64_t *arrived;

    if (!receive || receive->provider_data[RECEIVE_STATE] < RECEIVE_PUTS ||
        packet->offset != receive->provider_data[RECEIVE_ARRIVED] || !packet->payload_length ||
        packet->payload_length > receive->length - packet->offset) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it sent a message that was not called for");
        return;
    }
    arrived = &receive->provider_data[RECEIVE_ARRIVED];
    ofp_receive_write(receive, packet->offset, packet->payload, packet->payload_length);
    *arrived += packet->payload_length;
    if (*arrived == receive->length)
        end_receive(path, receive, 0);
}

void ofpi_rdm_pushed_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_receive *receive = ofp_receive_find(path->base.peer, packet->receive);

    if (!receive || receive->provider_data[RECEIVE_STATE] != RECEIVE_PUTS || receive->provider_data[RECEIVE_ARRIVED]) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it put a message that was not called for");
        return;
    }
    end_receive(path, receive, packet->error);
}
