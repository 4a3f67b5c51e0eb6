/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/registration.h"
#include "rdm/transfer/message.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"
#include "ofipy/check.h"

/* Indices of a receive in flight in provider_data. */
enum { RECEIVE_STATE, RECEIVE_ARRIVED, RECEIVE_REGISTRATION };
/*
 * Values of RECEIVE_STATE. Fragments may arrive although puts were requested, if the sender cannot register its
 * memory.
 */
enum { RECEIVE_GETS = 1, RECEIVE_PUTS, RECEIVE_FRAGMENTS };

static struct ofpi_rdm_path *path_of_receive(const struct ofp_receive *receive)
{
    return (struct ofpi_rdm_path *)(uintptr_t)receive->message.provider_data[OFPI_RDM_MESSAGE_PATH];
}

/* ------------------------------------------------------------------------------------------------------- the end */

static void end_receive(struct ofpi_rdm_path *path, struct ofp_receive *receive, int error)
{
    struct ofpi_rdm_packet done = {
        .kind = OFPI_RDM_DONE, .id = receive->message.provider_data[OFPI_RDM_MESSAGE_ID], .error = error};

    ofpi_rdm_memory_deregister(path,
                               (struct ofpi_rdm_registration *)(uintptr_t)receive->provider_data[RECEIVE_REGISTRATION]);
    ofpi_rdm_control_send(path, &done);
    ofp_receive_complete(receive, error, 0);
}

static void gets_finished(struct ofpi_rdm_move *move, int error) { end_receive(move->path, move->owner, error); }

/* ----------------------------------------------------------------------------------------- requesting the payload */

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
                                   .id = receive->message.provider_data[OFPI_RDM_MESSAGE_ID],
                                   .receive = receive->id,
                                   .length = receive->length};
    struct ofpi_rdm_registration *registration = NULL;

    if ((path->base.channel->ops->properties & (OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT)) == OFPI_CHANNEL_PUT)
        registration = ofpi_rdm_memory_register(path, receive->iov, receive->regions, receive->iov_count,
                                                receive->length, OFP_ACCESS_REMOTE_WRITE);
    OFP_CHECK(path->state == OFPI_RDM_UP && receive->length > 0);
    ofpi_rdm_registration_fill_pieces(registration, &pull);
    receive->provider_data[RECEIVE_STATE] = registration ? RECEIVE_PUTS : RECEIVE_FRAGMENTS;
    receive->provider_data[RECEIVE_REGISTRATION] = (uint64_t)(uintptr_t)registration;
    ofpi_rdm_control_send(path, &pull);
}

static void receive_stored_payload(struct ofp_receive *receive, struct ofpi_rdm_unexpected *stored)
{
    if (receive->length)
        ofp_receive_write(receive, 0, stored->pieces, receive->length);
    ofpi_rdm_unexpected_free(stored);
    ofp_receive_complete(receive, 0, 0);
}

void ofpi_rdm_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct ofpi_rdm_path *path = path_of_receive(receive);
    struct ofpi_rdm_unexpected *stored = ofpi_rdm_unexpected_of(&receive->message);

    /* The endpoint is closed, and its paths are gone. */
    if (!ofpi_rdm_endpoint_of(endpoint)->open) {
        ofp_receive_complete(receive, ECANCELED, 0);
        return;
    }
    if (stored && stored->whole) {
        receive_stored_payload(receive, stored);
        return;
    }
    /* If the path is over, the loss of the peer ends the receive. */
    if (path->state == OFPI_RDM_UP && !receive->length)
        end_receive(path, receive, 0);
    else if (path->state == OFPI_RDM_UP && !pull_by_device(path, receive, stored))
        request_payload(path, receive);
    ofpi_rdm_unexpected_free(stored);
}

/* -------------------------------------------------------------------------------------------------------- messages */

/* The sender waits for delivery: receive the payload before a receive matches, if the core has space. */
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
    struct ofp_message message = ofpi_rdm_message_build(path, packet, packet->length);
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
    return ofpi_rdm_message_announce(path, &message, stored);
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
    OFP_CHECK(*arrived <= receive->length);
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
