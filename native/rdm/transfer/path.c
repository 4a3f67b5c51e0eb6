/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/path.h"

#include <errno.h>
#include <stdlib.h>

#include "rdm/transfer/registration.h"
#include "ofipy/check.h"

/* A packet without payload that waits for credit. There are few: one for each announced message that was received. */
struct ofpi_rdm_control {
    struct ofp_list node;
    struct ofpi_rdm_packet header;
};

/* Class of packets that need no credit. */
#define FREE OFPI_CREDIT_CLASSES

static const uint8_t classes[OFPI_RDM_KINDS] = {
    [OFPI_RDM_CREDIT] = FREE,
    [OFPI_RDM_EAGER] = OFPI_CREDIT_REQUEST,
    [OFPI_RDM_ANNOUNCE] = OFPI_CREDIT_REQUEST,
    [OFPI_RDM_PULL] = OFPI_CREDIT_ANSWER,
    [OFPI_RDM_DATA] = OFPI_CREDIT_ANSWER,
    [OFPI_RDM_PUSHED] = OFPI_CREDIT_ANSWER,
    [OFPI_RDM_DONE] = OFPI_CREDIT_ANSWER,
    [OFPI_RDM_REMOTE] = OFPI_CREDIT_REQUEST,
    [OFPI_RDM_ANSWER] = OFPI_CREDIT_ANSWER,
    [OFPI_RDM_NOTICE] = OFPI_CREDIT_ANSWER,
};

bool ofpi_rdm_is_request(enum ofpi_rdm_kind kind) { return classes[kind] == OFPI_CREDIT_REQUEST; }

/* The operation of the packet has completed already: a copied message, or the data of a write. */
static bool carries_completed(uint8_t kind) { return kind == OFPI_RDM_EAGER || kind == OFPI_RDM_NOTICE; }

/* ------------------------------------------------------------------------------------------------ beginning and end */

struct ofpi_rdm_path *ofpi_rdm_path_create(struct ofpi_rdm_endpoint *endpoint, struct ofp_peer *peer)
{
    struct ofpi_rdm_path *path = calloc(1, sizeof(*path) + endpoint->channel.ops->path_size);

    if (!path)
        return NULL;
    if (!ofpi_credit_open(&path->credits, &endpoint->pool)) {
        free(path);
        return NULL;
    }
    path->base = (struct ofpi_path){.channel = &endpoint->channel, .peer = peer, .private = path + 1};
    path->endpoint = endpoint;
    path->packet_size = endpoint->channel.limits.packet_size;
    ofp_list_init(&path->waiting);
    ofp_list_init(&path->controls);
    ofp_list_init(&path->announced);
    ofp_list_init(&path->pushes);
    ofp_list_init(&path->moves);
    ofp_list_init(&path->registrations);
    ofp_list_append(&endpoint->paths, &path->node);
    return path;
}

static void free_list_entries(struct ofp_list *list)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(list)))
        free(node);
}

void ofpi_rdm_requests_discard(struct ofpi_rdm_path *path)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&path->waiting)))
        ofpi_rdm_packet_post(path->endpoint, OFP_CONTAINER_OF(node, struct ofpi_packet, node));
}

static void clear_path_lists(struct ofpi_rdm_path *path)
{
    if (ofp_list_linked(&path->scheduled))
        ofp_list_remove(&path->scheduled);
    ofpi_rdm_requests_discard(path);
    free_list_entries(&path->controls);
    free_list_entries(&path->announced);
    free_list_entries(&path->pushes);
    path->parting = NULL;
}

void ofpi_rdm_path_abandon(struct ofpi_rdm_path *path)
{
    if (path->state == OFPI_RDM_DROPPED)
        return;
    clear_path_lists(path);
    path->state = OFPI_RDM_DROPPED;
    path->base.peer = NULL;
    path->endpoint->channel.ops->close(&path->base);
    /* Moves have ended: the core ends the operations now, and their memory may go. */
    ofpi_rdm_path_deregister_memory(path);
}

void ofpi_rdm_path_free(struct ofpi_rdm_path *path)
{
    OFP_CHECK(path->state == OFPI_RDM_DROPPED || path->state == OFPI_RDM_BEGUN);
    OFP_CHECK(ofp_list_empty(&path->moves) && ofp_list_empty(&path->registrations));
    clear_path_lists(path);
    /* Only now: until here the peer could use the credits that it was granted. */
    ofpi_credit_close(&path->credits, &path->endpoint->pool);
    ofp_list_remove(&path->node);
    free(path);
}

void ofpi_rdm_path_schedule(struct ofpi_rdm_path *path)
{
    if (!ofp_list_linked(&path->scheduled) && path->state != OFPI_RDM_DROPPED)
        ofp_list_append(&path->endpoint->scheduled, &path->scheduled);
}

void ofpi_rdm_path_schedule_now(struct ofpi_rdm_path *path)
{
    ofpi_rdm_path_schedule(path);
    path->endpoint->urgent = true;
}

void ofpi_rdm_path_mark_failed(struct ofpi_rdm_path *path, int error, const char *why)
{
    if (path->error || path->state == OFPI_RDM_DROPPED)
        return;
    OFP_CHECK(error > 0 && !path->reported);
    path->error = error;
    path->why = why;
    path->state = OFPI_RDM_OVER;
    ofpi_rdm_path_schedule_now(path);
}

/* --------------------------------------------------------------------------------------------------------- leaving */

bool ofpi_rdm_can_send(const struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind)
{
    return path->state == OFPI_RDM_UP && path->in_flight < path->base.channel->limits.path_window &&
           !ofp_list_empty(&path->endpoint->free) &&
           (classes[kind] == FREE || ofpi_credit_is_left(&path->credits, (enum ofpi_credit_class)classes[kind]));
}

struct ofpi_packet *ofpi_rdm_packet_build(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header,
                                          uint8_t **payload)
{
    struct ofpi_packet *packet;

    if (!ofpi_rdm_can_send(path, (enum ofpi_rdm_kind)header->kind)) {
        ofpi_rdm_path_schedule(path);
        return NULL;
    }
    if (classes[header->kind] != FREE)
        ofpi_credit_charge(&path->credits, (enum ofpi_credit_class)classes[header->kind]);
    packet = OFP_CONTAINER_OF(ofp_list_pop(&path->endpoint->free), struct ofpi_packet, node);
    packet->length = ofpi_rdm_encode(header, packet->bytes);
    packet->completed = carries_completed(header->kind);
    *payload = packet->bytes + packet->length;
    return packet;
}

void ofpi_rdm_packet_send(struct ofpi_rdm_path *path, struct ofpi_packet *packet, uint64_t payload_length, bool more)
{
    struct ofpi_rdm_endpoint *endpoint = path->endpoint;
    uint16_t granted[OFPI_CREDIT_CLASSES];
    int result;

    packet->length += (uint32_t)payload_length;
    OFP_CHECK(path->state == OFPI_RDM_UP && packet->length <= path->packet_size);
    OFP_CHECK(path->in_flight < endpoint->channel.limits.path_window);
    ofpi_credit_grant(&path->credits, &endpoint->pool, granted);
    ofpi_rdm_encode_credits(packet->bytes, granted, ofp_announce_only(endpoint->base));
    path->in_flight++;
    result = endpoint->channel.ops->send(&path->base, packet, more);
    if (result != OFP_POST_PENDING)
        ofpi_rdm_sent(&path->base, packet);
    if (result < 0)
        ofpi_rdm_path_mark_failed(path, -result, NULL);
}

void ofpi_rdm_sent(struct ofpi_path *base, struct ofpi_packet *packet)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);

    OFP_CHECK(path->in_flight > 0);
    path->in_flight--;
    ofp_list_prepend(&path->endpoint->free, &packet->node);
}

void ofpi_rdm_control_send(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    struct ofpi_packet *packet = NULL;
    struct ofpi_rdm_control *control;
    uint8_t *payload;

    /* Preserve the order: controls that wait go first. */
    if (ofp_list_empty(&path->controls))
        packet = ofpi_rdm_packet_build(path, header, &payload);
    if (packet) {
        ofpi_rdm_packet_send(path, packet, 0, false);
        return;
    }
    if (path->state != OFPI_RDM_UP)
        return;
    control = malloc(sizeof(*control));
    if (!control) {
        ofpi_rdm_path_mark_failed(path, ENOMEM, "out of memory for an answer");
        return;
    }
    control->header = *header;
    ofp_list_append(&path->controls, &control->node);
}

int ofpi_rdm_controls_resume(struct ofpi_rdm_path *path)
{
    static const struct ofpi_rdm_packet credit = {.kind = OFPI_RDM_CREDIT};
    struct ofpi_packet *packet;
    uint8_t *payload;
    int count = 0;

    while (!ofp_list_empty(&path->controls)) {
        struct ofpi_rdm_control *control = OFP_CONTAINER_OF(path->controls.next, struct ofpi_rdm_control, node);

        packet = ofpi_rdm_packet_build(path, &control->header, &payload);
        if (!packet)
            break;
        ofp_list_remove(&control->node);
        free(control);
        ofpi_rdm_packet_send(path, packet, 0, true);
        count++;
    }
    if (ofpi_credit_is_due(&path->credits) && (packet = ofpi_rdm_packet_build(path, &credit, &payload))) {
        ofpi_rdm_packet_send(path, packet, 0, false);
        count++;
    }
    return count;
}

uint64_t ofpi_rdm_path_count_unsent(const struct ofpi_rdm_path *path)
{
    const struct ofpi_channel_ops *ops = path->base.channel->ops;
    uint64_t count = ops->unsent ? ops->unsent(&path->base) : 0;

    for (const struct ofp_list *node = path->controls.next; node != &path->controls; node = node->next)
        count += carries_completed(OFP_CONTAINER_OF(node, const struct ofpi_rdm_control, node)->header.kind);
    return count;
}

/* -------------------------------------------------------------------------------------------------------- arriving */

bool ofpi_rdm_credits_receive(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header)
{
    path->announce = header->flags & OFPI_RDM_FULL;
    if (ofpi_credit_receive(&path->credits, header->credits))
        return true;
    ofpi_rdm_path_mark_failed(path, EPROTO, "it gives back more credits than there can be");
    return false;
}

bool ofpi_rdm_packet_accept(struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind)
{
    if (classes[kind] == FREE || ofpi_credit_accept_packet(&path->credits, (enum ofpi_credit_class)classes[kind]))
        return true;
    ofpi_rdm_path_mark_failed(path, EPROTO, "it sent more packets than it was granted");
    return false;
}

void ofpi_rdm_packet_post(struct ofpi_rdm_endpoint *endpoint, struct ofpi_packet *packet)
{
    int result = endpoint->open ? endpoint->channel.ops->receive(&endpoint->channel, packet) : 0;

    /*
     * The device is broken, and the channel reports that for every path. Until then the peer has one credit without a
     * buffer.
     */
    if (result)
        endpoint->core->log(OFP_LOG_ERROR, endpoint->provider, "endpoint %u: cannot post a receive buffer: errno %d",
                            endpoint->base->id, -result);
}

void ofpi_rdm_packet_return(struct ofpi_rdm_path *path, struct ofpi_packet *packet, enum ofpi_rdm_kind kind)
{
    ofpi_rdm_packet_post(path->endpoint, packet);
    if (classes[kind] != FREE)
        ofpi_credit_mark_owed(&path->credits, (enum ofpi_credit_class)classes[kind]);
    if (ofpi_credit_is_due(&path->credits))
        ofpi_rdm_path_schedule(path);
}
