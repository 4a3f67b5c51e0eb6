/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/arrive.h"

#include <errno.h>

#include "rdm/transfer/message.h"
#include "rdm/transfer/path.h"
#include "rdm/transfer/pull.h"
#include "rdm/transfer/push.h"
#include "rdm/transfer/request.h"
#include "rdm/transfer/rma.h"
#include "rdm/transfer/serve.h"

/* 0, or -EAGAIN: the request has to wait. */
static int handle_request(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    switch ((enum ofpi_rdm_kind)header->kind) {
    case OFPI_RDM_EAGER:
        return ofpi_rdm_eager_handle(path, header);
    case OFPI_RDM_ANNOUNCE:
        return ofpi_rdm_announcement_handle(path, header);
    default:
        return ofpi_rdm_remote_serve(path, header);
    }
}

/* Answers never wait: they need neither space nor other packets. */
static void handle_answer(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    switch ((enum ofpi_rdm_kind)header->kind) {
    case OFPI_RDM_PULL:
        ofpi_rdm_pull_handle(path, header);
        break;
    case OFPI_RDM_DATA:
        ofpi_rdm_data_handle(path, header);
        break;
    case OFPI_RDM_PUSHED:
        ofpi_rdm_pushed_handle(path, header);
        break;
    case OFPI_RDM_DONE:
        ofpi_rdm_done_handle(path, header);
        break;
    case OFPI_RDM_ANSWER:
        ofpi_rdm_answer_handle(path, header);
        break;
    case OFPI_RDM_NOTICE:
        ofpi_rdm_notice_handle(path, header);
        break;
    default: /* the packet had only credits */
        break;
    }
}

/* The decoder checked the packet when it arrived, so it cannot fail here. */
int ofpi_rdm_requests_resume(struct ofpi_rdm_path *path)
{
    int count = 0;

    while (!ofp_list_empty(&path->waiting) && ofpi_rdm_is_known(path)) {
        struct ofpi_packet *packet = OFP_CONTAINER_OF(path->waiting.next, struct ofpi_packet, node);
        struct ofpi_rdm_packet header;

        ofpi_rdm_decode(packet->bytes, packet->length, &header);
        if (handle_request(path, &header) == -EAGAIN)
            break;
        ofp_list_remove(&packet->node);
        ofpi_rdm_packet_return(path, packet, (enum ofpi_rdm_kind)header.kind);
        count++;
    }
    return count;
}

/*
 * Decode a packet, check its credit and store the credits that it returns. Credits first: what waits here may need
 * them.
 */
static bool accept_packet(struct ofpi_rdm_path *path, const struct ofpi_packet *packet, struct ofpi_rdm_packet *header)
{
    const char *wrong = packet->length <= path->packet_size ? ofpi_rdm_decode(packet->bytes, packet->length, header)
                                                            : "a packet that is longer than was agreed";

    if (!wrong)
        return ofpi_rdm_packet_accept(path, (enum ofpi_rdm_kind)header->kind) && ofpi_rdm_credits_receive(path, header);
    ofpi_rdm_path_mark_failed(path, EPROTO, wrong);
    return false;
}

void ofpi_rdm_packet_handle(struct ofpi_rdm_path *path, struct ofpi_packet *packet)
{
    struct ofpi_rdm_packet header;
    enum ofpi_rdm_kind kind;

    if (path->error || !accept_packet(path, packet, &header)) {
        ofpi_rdm_packet_post(path->endpoint, packet);
        return;
    }
    kind = (enum ofpi_rdm_kind)header.kind;
    if (ofpi_rdm_is_request(kind)) {
        if (!ofp_list_empty(&path->waiting) || handle_request(path, &header) == -EAGAIN) {
            ofp_list_append(&path->waiting, &packet->node);
            ofpi_rdm_path_schedule(path);
            return;
        }
    } else if (path->state == OFPI_RDM_UP) {
        handle_answer(path, &header);
    }
    ofpi_rdm_packet_return(path, packet, kind);
}

void ofpi_rdm_packet_handle_early(struct ofpi_rdm_path *path, struct ofpi_packet *packet)
{
    struct ofpi_rdm_packet header;

    if (path->error || !accept_packet(path, packet, &header)) {
        ofpi_rdm_packet_post(path->endpoint, packet);
    } else if (ofpi_rdm_is_request((enum ofpi_rdm_kind)header.kind)) {
        ofp_list_append(&path->waiting, &packet->node);
        ofpi_rdm_path_schedule(path);
    } else {
        /* No request was sent by this path yet, so no answer is expected. */
        ofpi_rdm_packet_return(path, packet, (enum ofpi_rdm_kind)header.kind);
    }
}
