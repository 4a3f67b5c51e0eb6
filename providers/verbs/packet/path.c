/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/path.h"

#include <errno.h>
#include <stdlib.h>

#include "connection/reaper.h"
#include "packet/key.h"
#include "packet/number.h"
#include "packet/probe.h"
#include "packet/receive.h"
#include "packet/work.h"
#include "queue/state.h"

/* ------------------------------------------------------------------------------------------------ beginning and end */

void verbs_path_init(struct verbs_path *path, struct ofpi_path *base, enum verbs_path_state state,
                     void (*event)(struct verbs_listener *listener, const struct verbs_event *event))
{
    struct verbs_rdm *rdm = verbs_rdm_of(base->channel);

    path->listener.event = event;
    path->base = base;
    path->rdm = rdm;
    verbs_send_queue_init(&path->queue, rdm->depth);
    path->state = (uint8_t)state;
    path->responder_resources = rdm->domain->port->limits.responder_resources;
    path->initiator_depth = rdm->domain->port->limits.initiator_depth;
    ofp_list_append(&rdm->paths, &path->node);
}

/* Every work request of every path, and every posted receive, may need a completion queue entry at once. */
static int reserve_completions(struct verbs_rdm *rdm)
{
    uint32_t reserved = rdm->cq_reserved + rdm->depth, size = rdm->cq_size;

    while (size < reserved)
        size *= 2;
    if (size > rdm->cq_size && verbs_calls.resize_cq(rdm->cq, (int)size) != 0)
        return -ENOBUFS;
    rdm->cq_size = size;
    rdm->cq_reserved = reserved;
    OFP_CHECK(rdm->cq_reserved <= rdm->cq_size);
    return 0;
}

static struct ibv_qp *create_path_pair(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .qp_context = path->qp_context,
        .send_cq = rdm->cq,
        .recv_cq = rdm->cq,
        .srq = rdm->srq,
        .cap = {.max_send_wr = rdm->depth, .max_send_sge = 1, .max_inline_data = rdm->channel->limits.inline_size}};

    return verbs_calls.create_qp(rdm->domain->pd, &attr);
}

int verbs_path_pair_open(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;
    int result = reserve_completions(rdm);

    OFP_CHECK(!path->connected && path->state <= VERBS_PATH_ACCEPTED);
    if (result)
        return result;
    /* It stays in RESET until the peer is known: nothing can be received before. */
    path->qp_context = calloc(1, sizeof(*path->qp_context));
    path->qp = path->qp_context ? create_path_pair(path) : NULL;
    if (!path->qp) {
        result = -errno;
        free(path->qp_context);
    } else {
        path->qp_context->id = path->id;
        path->number = path->qp->qp_num;
        if (verbs_path_holder_open(path) && verbs_number_add(rdm, path))
            return 0;
        verbs_qp_close(path->qp);
        path->qp = NULL;
        path->holder = NULL;
        result = -ENOMEM;
    }
    rdm->cq_reserved -= rdm->depth;
    return result;
}

static void detach_path_pair(struct verbs_path *path)
{
    OFP_CHECK(path->rdm->cq_reserved >= path->rdm->depth);
    verbs_number_remove(path->rdm, path);
    path->rdm->cq_reserved -= path->rdm->depth;
    path->qp = NULL;
    path->holder = NULL;
}

/*
 * Ends all work at the device. Memory of reads and writes returns to its owner, so a queue pair with those in flight
 * is destroyed at once. Any other queue pair only has receives in use, and takes no more in the error state; those it
 * took arrive at the completion queue, before it is destroyed.
 */
static void stop_path(struct verbs_path *path)
{
    if (path->stopped)
        return;
    path->stopped = true;
    verbs_core->timer_stop(path->rdm->domain->base, &path->answer);
    verbs_probe_stop(path);
    verbs_packets_flush(path->rdm);
    path->rdm->chained = NULL;
    if (path->connected)
        verbs_calls.disconnect(path->id);
    if (path->qp)
        verbs_qp_fail(path->qp);
    if (path->moves) {
        verbs_qp_close(path->qp);
        detach_path_pair(path);
    }
    verbs_path_sends_cancel(path);
    OFP_CHECK(verbs_send_queue_is_empty(&path->queue) && !path->moves);
}

void verbs_path_id_close(struct verbs_path *path)
{
    struct ibv_qp *qp = path->qp;

    OFP_CHECK(!path->moves);
    if (qp && !path->id)
        verbs_qp_close(qp);
    if (qp)
        detach_path_pair(path);
    if (path->id)
        verbs_id_close_later(path->rdm->domain, path->id, qp);
    path->id = NULL;
}

void verbs_path_remove(struct verbs_path *path)
{
    stop_path(path);
    verbs_path_id_close(path);
    free(path->facts);
    verbs_path_key_end(path);
    ofp_list_remove(&path->node);
    if (ofp_list_linked(&path->scheduled))
        ofp_list_remove(&path->scheduled);
}

void verbs_path_schedule(struct verbs_path *path)
{
    if (!ofp_list_linked(&path->scheduled))
        ofp_list_append(&path->rdm->scheduled, &path->scheduled);
}

void verbs_path_mark_failed(struct verbs_path *path, const struct ofpi_meeting_end *end)
{
    if (path->end.error)
        return;
    path->end = *end;
    if (path->state != VERBS_PATH_CLOSED)
        path->state = VERBS_PATH_FAILED;
    verbs_path_schedule(path);
}

void verbs_path_close(struct ofpi_path *base)
{
    struct verbs_path *path = verbs_path_of(base);
    bool leaves = path->connected && path->state != VERBS_PATH_FAILED;

    path->state = VERBS_PATH_CLOSED;
    if (!leaves || path->moves)
        stop_path(path);
    verbs_path_schedule(path);
}

bool verbs_path_drain(struct verbs_path *path)
{
    bool waits = path->connected && !path->stopped && !path->end.error;

    return !waits || verbs_path_sends_drain(path);
}

/* Returns true if the end of the path was reported. */
static bool report_path_end(struct verbs_path *path)
{
    const struct ofpi_channel_user *user = path->rdm->channel->user;

    OFP_CHECK(path->state != VERBS_PATH_FAILED || path->end.error);
    if (path->state == VERBS_PATH_FAILED) {
        user->broken(path->base, &path->end);
        return true;
    }
    if (!verbs_path_drain(path))
        return false;
    if (!path->stopped) {
        /* Wait for one more poll of the completion queue. */
        stop_path(path);
        verbs_path_schedule(path);
        return false;
    }
    verbs_path_remove(path);
    user->closed(path->base);
    return true;
}

int verbs_paths_report_ends(struct verbs_rdm *rdm)
{
    struct ofp_list now, *node;
    int count = 0;

    if (ofp_list_empty(&rdm->scheduled))
        return 0;
    now = rdm->scheduled;
    now.next->previous = now.previous->next = &now;
    ofp_list_init(&rdm->scheduled);
    while ((node = ofp_list_pop(&now)))
        count += report_path_end(OFP_CONTAINER_OF(node, struct verbs_path, scheduled));
    return count;
}

void verbs_paths_remove(struct verbs_rdm *rdm)
{
    while (!ofp_list_empty(&rdm->paths))
        verbs_path_remove(OFP_CONTAINER_OF(rdm->paths.next, struct verbs_path, node));
}
