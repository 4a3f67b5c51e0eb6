/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots without payload: sent now, or queued while the peer's ring is full. */
#include "link/control.h"

#include <errno.h>
#include <stdlib.h>

#include "link/link.h"
#include "link/publish.h"

static bool send_control(struct shm_link *link, const struct shm_control *control)
{
    uint64_t state;
    struct shm_slot *slot = shm_ring_claim(&link->ring, link->number_there, &state);

    if (!slot)
        return false;
    slot->content.kind = control->kind;
    slot->content.flags = control->flags;
    slot->content.length = 0;
    slot->content.control = control->fields;
    shm_slot_publish(link, slot, state);
    if (control->kind == SHM_GOODBYE) {
        link->goodbye_sent = true;
        OFP_SHM_STEP(goodbye_sent);
    }
    return true;
}

void shm_retry_schedule(struct shm_endpoint *endpoint)
{
    if (endpoint->retry_timer.position)
        return;
    endpoint->retry_timer.deadline = shm_core->now() + SHM_RETRY_PAUSE;
    shm_core->timer_start(endpoint->domain->base, &endpoint->retry_timer);
}

void shm_control_send(struct shm_link *link, uint8_t kind, uint8_t flags, const struct shm_control_fields *fields)
{
    struct shm_control control = {.kind = kind, .flags = flags, .fields = *fields}, *queued;

    if (link->draining)
        return;
    if (ofp_list_empty(&link->controls) && send_control(link, &control))
        return;
    queued = malloc(sizeof(*queued));
    if (!queued) {
        /* Without the slot the peer would wait without end, so the link ends. */
        shm_core->log(OFP_LOG_ERROR, SHM_NAME, "out of memory: a peer is given up");
        shm_link_mark_ended(link, SHM_END_DEAD);
        return;
    }
    *queued = control;
    ofp_list_append(&link->controls, &queued->node);
    shm_link_schedule(link);
    shm_retry_schedule(link->endpoint);
}

bool shm_controls_flush(struct shm_link *link)
{
    while (!ofp_list_empty(&link->controls)) {
        struct shm_control *control = OFP_CONTAINER_OF(link->controls.next, struct shm_control, node);

        if (!send_control(link, control)) {
            shm_retry_schedule(link->endpoint);
            return false;
        }
        ofp_list_remove(&control->node);
        free(control);
    }
    link->ready = link->up && !link->remote_operation;
    return true;
}

void shm_controls_discard(struct shm_link *link)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&link->controls)))
        free(OFP_CONTAINER_OF(node, struct shm_control, node));
}
