/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/receive.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Soft-RoCE's vendor ID, an OUI that is assigned to no vendor. */
#define SOFT_ROCE_VENDOR 0xffffff

bool verbs_port_is_soft_roce(const struct verbs_port *port) { return port->device.vendor_id == SOFT_ROCE_VENDOR; }

/* Let the counters of the domain follow those of the endpoint. */
static void update_counters(struct verbs_rdm *rdm, uint32_t usable)
{
    struct ofp_domain *engine = rdm->domain->base->engine;

    engine->packet_buffers += usable;
    engine->packet_buffers -= rdm->usable;
    engine->packet_buffers_reclaimed += (uint32_t)(rdm->buffers.reclaimed - rdm->reclaimed);
    rdm->usable = usable;
    rdm->reclaimed = rdm->buffers.reclaimed;
}

int verbs_packet_buffers_open(struct verbs_rdm *rdm, const struct ofpi_channel_limits *limits)
{
    struct verbs_buffer *all = NULL;

    if (verbs_port_is_soft_roce(rdm->domain->port)) {
        all = calloc(limits->receive_size + limits->spare_size, sizeof(*all));
        if (!all)
            return -ENOMEM;
    }
    verbs_buffers_init(&rdm->buffers, all, limits->receive_size);
    update_counters(rdm, limits->receive_size);
    return 0;
}

static void free_holder(struct verbs_rdm *rdm, struct verbs_pair_holder *holder)
{
    verbs_holder_remove(&rdm->buffers, &holder->base);
    free(holder);
}

void verbs_packet_buffers_close(struct verbs_rdm *rdm)
{
    if (!rdm->buffers.wanted)
        return;
    while (!ofp_list_empty(&rdm->buffers.holders))
        free_holder(rdm, OFP_CONTAINER_OF(rdm->buffers.holders.next, struct verbs_pair_holder, base.node));
    update_counters(rdm, 0);
    free(rdm->buffers.all);
    rdm->buffers = (struct verbs_buffers){0};
}

/* --------------------------------------------------------------------------------------------------------- buffers */

static int post_packet(struct verbs_rdm *rdm, struct ofpi_packet *packet)
{
    struct ibv_sge segment = {
        .addr = (uintptr_t)packet->bytes, .length = rdm->channel->limits.packet_size, .lkey = rdm->packets->mr->lkey};
    struct ibv_recv_wr request = {.wr_id = (uintptr_t)packet, .sg_list = &segment, .num_sge = 1}, *bad;

    return -ibv_post_srq_recv(rdm->srq, &request, &bad);
}

/* Packets are an array, so any of them leads to every other one. */
static int post_due_packets(struct verbs_rdm *rdm)
{
    uint32_t index;
    int result = 0;

    while (!result && verbs_buffers_pop(&rdm->buffers, &index))
        result = post_packet(rdm, rdm->first_packet + index);
    return result;
}

int verbs_packet_post_receive(struct ofpi_channel *channel, struct ofpi_packet *packet)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);

    if (!rdm->buffers.all)
        return post_packet(rdm, packet);
    rdm->first_packet = packet - packet->index;
    verbs_buffers_return(&rdm->buffers, packet->index);
    return post_due_packets(rdm);
}

void verbs_packet_receive_complete(struct verbs_rdm *rdm, const struct verbs_path *path, struct ofpi_packet *packet)
{
    if (rdm->buffers.all)
        verbs_buffers_complete(&rdm->buffers, packet->index, path && path->holder ? &path->holder->base : NULL);
}

/* --------------------------------------------------------------------------------------------------------- holders */

bool verbs_path_holder_open(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;

    if (!rdm->buffers.all)
        return true;
    path->holder = calloc(1, sizeof(*path->holder));
    if (!path->holder)
        return false;
    path->holder->end.some = &rdm->destroyed;
    path->qp_context->end = &path->holder->end;
    verbs_holder_add(&rdm->buffers, &path->holder->base);
    return true;
}

void verbs_packet_holders_check(struct verbs_rdm *rdm)
{
    if (VERBS_LIKELY(!atomic_load_explicit(&rdm->destroyed, memory_order_relaxed)) ||
        !atomic_exchange_explicit(&rdm->destroyed, false, memory_order_acq_rel))
        return;
    for (struct ofp_list *node = rdm->buffers.holders.next; node != &rdm->buffers.holders; node = node->next) {
        struct verbs_pair_holder *holder = OFP_CONTAINER_OF(node, struct verbs_pair_holder, base.node);

        if (atomic_load_explicit(&holder->end.destroyed, memory_order_acquire)) {
            holder->ending = true;
            rdm->holders_end = true;
        }
    }
}

static void remove_ending_holders(struct verbs_rdm *rdm)
{
    struct ofp_list *node, *following;

    rdm->holders_end = false;
    OFP_LIST_EACH(node, following, &rdm->buffers.holders) {
        struct verbs_pair_holder *holder = OFP_CONTAINER_OF(node, struct verbs_pair_holder, base.node);

        if (holder->ending)
            free_holder(rdm, holder);
    }
}

void verbs_packet_buffers_reclaim(struct verbs_rdm *rdm, bool empty)
{
    if (empty && rdm->holders_end)
        remove_ending_holders(rdm);
    if (VERBS_LIKELY(!rdm->buffers.changed))
        return;
    verbs_buffers_reclaim(&rdm->buffers);
    /* A device that takes no buffer is broken, and the next completion reports that. */
    post_due_packets(rdm);
    update_counters(rdm, verbs_buffers_count_usable(&rdm->buffers));
}
