/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/alive.h"

#include <errno.h>
#include <stdatomic.h>

#include "packet/path.h"
#include "packet/work.h"
#include "queue/fault.h"

static void probe_idle_path(struct verbs_path *path)
{
    int fatal = atomic_load_explicit(&path->qp_context->fatal, memory_order_acquire);
    /* A completion is requested already if the last work request asked for one. */
    bool asks = !verbs_send_queue_is_empty(&path->queue) && path->queue.signalled == path->queue.head;

    if (fatal)
        verbs_path_mark_failed(path, &(struct ofpi_meeting_end){
                                         .error = ECONNRESET, .unsure = true, .text = verbs_event_find_text(fatal)});
    else if (!path->received && path->queue.head == path->checked_head && !asks)
        verbs_path_post_empty_write(path);
    path->received = false;
    path->checked_head = path->queue.head;
}

static void alive_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    struct verbs_rdm *rdm = OFP_CONTAINER_OF(timer, struct verbs_rdm, alive);

    for (struct ofp_list *node = rdm->paths.next; node != &rdm->paths; node = node->next) {
        struct verbs_path *path = OFP_CONTAINER_OF(node, struct verbs_path, node);

        if (path->state == VERBS_PATH_UP)
            probe_idle_path(path);
    }
    timer->deadline = now + rdm->domain->settings.alive_ns;
    verbs_core->timer_start(rdm->domain->base, timer);
}

void verbs_alive_start(struct verbs_rdm *rdm)
{
    if (!rdm->domain->settings.alive_ns)
        return;
    rdm->alive.expired = alive_timer_expired;
    rdm->alive.deadline = verbs_core->now() + rdm->domain->settings.alive_ns;
    verbs_core->timer_start(rdm->domain->base, &rdm->alive);
}

void verbs_alive_stop(struct verbs_rdm *rdm) { verbs_core->timer_stop(rdm->domain->base, &rdm->alive); }
