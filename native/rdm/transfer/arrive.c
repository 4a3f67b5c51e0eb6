/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/arrive.h"

#include <errno.h>

#include "rdm/transfer/path.h"
#include "rdm/transfer/pull.h"
#include "rdm/transfer/push.h"
#include "rdm/transfer/request.h"
#include "rdm/transfer/rma.h"
#include "rdm/transfer/serve.h"

/* 0, or -EAGAIN: it has to wait. */
static int take_request(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    switch ((enum ofpi_rdm_kind)header->kind) {
    case OFPI_RDM_EAGER:
        return ofpi_rdm_take_eager(path, header);
    case OFPI_RDM_ANNOUNCE:
        return ofpi_rdm_take_announcement(path, header);
    default:
        return ofpi_rdm_serve(path, header);
    }
}

/* Never waits: neither for room nor for other packets. */
static void take_answer(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    switch ((enum ofpi_rdm_kind)header->kind) {
    case OFPI_RDM_PULL:
        ofpi_rdm_pull_asked(path, header);
        break;
    case OFPI_RDM_DATA:
        ofpi_rdm_take_data(path, header);
        break;
    case OFPI_RDM_PUSHED:
        ofpi_rdm_take_pushed(path, header);
        break;
    case OFPI_RDM_DONE:
        ofpi_rdm_done(path, header);
        break;
    case OFPI_RDM_ANSWER:
        ofpi_rdm_take_answer(path, header);
        break;
    case OFPI_RDM_NOTICE:
        ofpi_rdm_take_notice(path, header);
        break;
    default: /* it brought credits only */
        break;
    }
}

/* The packet's contents are right: they were looked at when it came. */
int ofpi_rdm_arrive_rest(struct ofpi_rdm_path *path)
{
    int count = 0;

    while (!ofp_list_empty(&path->waiting) && ofpi_rdm_is_known(path)) {
        struct ofpi_packet *packet = OFP_CONTAINER_OF(path->waiting.next, struct ofpi_packet, node);
        struct ofpi_rdm_packet header;

        ofpi_rdm_decode(packet->bytes, packet->length, &header);
        if (take_request(path, &header) == -EAGAIN)
            break;
        ofp_list_remove(&packet->node);
        ofpi_rdm_done_with(path, packet, (enum ofpi_rdm_kind)header.kind);
        count++;
    }
    return count;
}

/* What a packet allows may be what something here waits for. */
static bool is_welcome(struct ofpi_rdm_path *path, const struct ofpi_packet *packet, struct ofpi_rdm_packet *header)
{
    const char *wrong = packet->length <= path->packet_size ? ofpi_rdm_decode(packet->bytes, packet->length, header)
                                                            : "a packet that is longer than was agreed";

    if (!wrong)
        return ofpi_rdm_charge(path, (enum ofpi_rdm_kind)header->kind) && ofpi_rdm_take_credits(path, header);
    ofpi_rdm_path_doom(path, EPROTO, wrong);
    return false;
}

void ofpi_rdm_arrive(struct ofpi_rdm_path *path, struct ofpi_packet *packet)
{
    struct ofpi_rdm_packet header;
    enum ofpi_rdm_kind kind;

    if (path->error || !is_welcome(path, packet, &header)) {
        ofpi_rdm_post_again(path->endpoint, packet);
        return;
    }
    kind = (enum ofpi_rdm_kind)header.kind;
    if (ofpi_rdm_is_request(kind)) {
        if (!ofp_list_empty(&path->waiting) || take_request(path, &header) == -EAGAIN) {
            ofp_list_append(&path->waiting, &packet->node);
            ofpi_rdm_path_work_later(path);
            return;
        }
    } else if (path->state == OFPI_RDM_UP) {
        take_answer(path, &header);
    }
    ofpi_rdm_done_with(path, packet, kind);
}

void ofpi_rdm_arrive_early(struct ofpi_rdm_path *path, struct ofpi_packet *packet)
{
    struct ofpi_rdm_packet header;

    if (path->error || !is_welcome(path, packet, &header)) {
        ofpi_rdm_post_again(path->endpoint, packet);
    } else if (ofpi_rdm_is_request((enum ofpi_rdm_kind)header.kind)) {
        ofp_list_append(&path->waiting, &packet->node);
        ofpi_rdm_path_work_later(path);
    } else {
        /* Nothing was asked of it yet. */
        ofpi_rdm_done_with(path, packet, (enum ofpi_rdm_kind)header.kind);
    }
}
