/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/control.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "collective/group_agreement.h"
#include "collective/ahead.h"
#include "collective/awaited.h"
#include "collective/breaking.h"
#include "collective/collective.h"
#include "collective/control_message.h"
#include "collective/drain.h"
#include "collective/message.h"
#include "progress/progress.h"

#define PATIENCE UINT64_C(1000000000) /* ns */
#define PERIODS_BEFORE_WARNING 10u

/* --------------------------------------------------------------------------------------------------------- receiving */

static void complete_control_receive(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                     struct ofp_completion *completion)
{
    struct ofp_group *group = OFP_CONTAINER_OF(owner, struct ofp_group, control_receive);

    (void)endpoint;
    (void)op_flags;
    group->hears = false;
    if (!completion->error && (!group->closed || group->serves)) {
        group->has_heard = true;
        group->incoming_length = completion->length;
        ofpi_group_schedule(group);
    }
    ofpi_group_release(group);
}

static void post_control_receive(struct ofp_group *group)
{
    struct ofpi_message message = {.code = OFP_INTERNAL_RECV,
                                   .rank = OFP_PEER_ANY,
                                   .sequence = OFPI_CONTROL_SEQUENCE,
                                   .context = &group->control_receive,
                                   .offset = (uint64_t)(uintptr_t)group->incoming,
                                   .length = group->incoming_size};

    if (group->hears || (group->closed && !group->serves) || group->has_heard)
        return;
    group->control_receive.finish = complete_control_receive;
    group->hears = true;
    ofp_fetch_add(&group->uses, 1);
    if (ofpi_message_post(group, &message, &group->control_receive)) {
        group->hears = false;
        ofpi_group_release(group);
    }
}

/* Whether this member's call of that number is another one than the asking member's. */
static bool is_other_call(const struct ofp_group *group, const struct ofpi_control *control)
{
    bool is_known = control->sequence < group->sequence && group->sequence - control->sequence <= OFPI_SIGNATURES;

    return is_known && group->signatures[control->sequence % OFPI_SIGNATURES] != control->signature;
}

static void handle_broken(struct ofp_group *group, const struct ofpi_control *control)
{
    char *reason = (char *)(group->incoming + 1);
    uint64_t length = group->incoming_length - sizeof(*control);

    if (!ofpi_group_has_news(group))
        return;
    if (control->cause == OFP_GROUP_CAUSE_ABORT && length && length <= OFP_GROUP_REASON_MAX) {
        reason[length - 1] = 0;
        ofpi_group_mark_aborted(group, control->rank, reason);
    } else if (control->error == OFP_EMISMATCH)
        ofpi_group_mark_mismatch(group, control->rank, control->sequence, control->signature);
    else
        ofpi_group_mark_lost(group, control->rank);
    ofpi_group_fail(group, (int)control->error);
}

static void handle_control(struct ofp_group *group)
{
    struct ofpi_control control = *group->incoming;

    group->has_heard = false;
    if (group->incoming_length < sizeof(control) || ofpi_group_agreement_receive(group))
        return;
    if (group->closed || control.rank >= group->size)
        return;
    if (control.kind == OFPI_CONTROL_BROKEN) {
        handle_broken(group, &control);
        return;
    }
    if (group->incoming_length != sizeof(control))
        return;
    /* All others name their sender. */
    if (control.rank == group->rank || group->error)
        return;
    if (control.kind == OFPI_CONTROL_ASK && is_other_call(group, &control)) {
        ofpi_group_mark_mismatch(group, control.rank, control.sequence, control.signature);
        ofpi_group_fail(group, OFP_EMISMATCH);
    } else if (control.kind == OFPI_CONTROL_WANT) {
        ofpi_ahead_want_received(group, control.rank, control.sequence);
    } else if (control.kind == OFPI_CONTROL_STARTED) {
        ofpi_ahead_started_received(group, control.rank, control.sequence);
    }
}

/* ----------------------------------------------------------------------------------------------------------- sending */

static bool is_lost(const struct ofp_group *group, uint32_t rank)
{
    for (uint32_t i = 0; i < group->state.lost_count; i++)
        if (group->state.lost[i] == rank)
            return true;
    return false;
}

/* Tell the members at distances of powers of two, each of which passes it on: all know after log2(size) messages. */
static void send_broken(struct ofp_group *group)
{
    const struct ofp_group_state *state = &group->state;
    bool differs = group->error == OFP_EMISMATCH;
    bool is_lost_member = !differs && state->lost_count;
    struct {
        struct ofpi_control control;
        char reason[OFP_GROUP_REASON_MAX];
    } message = {.control = {.kind = OFPI_CONTROL_BROKEN, .cause = state->cause}};
    struct ofpi_control *control = &message.control;
    bool is_aborted = state->cause == OFP_GROUP_CAUSE_ABORT;
    uint64_t length = sizeof(*control);

    /* Of any other error the others need to know no more than which member has given up. */
    control->error = differs || is_lost_member ? (uint32_t)group->error : ECONNABORTED;
    control->rank = is_aborted ? state->rank : is_lost_member ? state->lost[0] : group->rank;
    control->sequence = state->sequence;
    control->signature = differs ? state->mine : 0;
    if (is_aborted)
        length += (uint64_t)snprintf(message.reason, sizeof(message.reason), "%s", state->reason) + 1;
    for (uint32_t distance = 1; distance < group->size; distance *= 2) {
        uint32_t behind = (uint32_t)(((uint64_t)group->rank + distance) % group->size);
        uint32_t before = (uint32_t)(((uint64_t)group->rank + group->size - distance) % group->size);

        if (!is_lost(group, behind))
            (void)ofpi_control_post(group, behind, &message, length, &group->control_send);
        if (behind != before && !is_lost(group, before))
            (void)ofpi_control_post(group, before, &message, length, &group->control_send);
    }
}

/* Ask the members that the oldest collective waits for. */
static void send_questions(struct ofp_group *group)
{
    struct ofpi_step steps[OFPI_STEPS_MAX];
    const struct ofpi_collective *oldest;
    struct ofpi_control control;
    int count;

    if (ofp_list_empty(&group->running))
        return;
    oldest = OFP_CONTAINER_OF(group->running.next, const struct ofpi_collective, node);
    control = (struct ofpi_control){
        .kind = OFPI_CONTROL_ASK, .rank = group->rank, .sequence = oldest->sequence, .signature = oldest->signature};
    count = ofpi_plan_build_round(&oldest->plan, oldest->round, steps);
    for (int i = 0; i < count; i++)
        if (steps[i].kind == OFPI_STEP_RECEIVE || steps[i].kind == OFPI_STEP_REDUCE)
            ofpi_control_send(group, steps[i].rank, &control, &group->question_send);
    if (oldest->is_held)
        ofpi_ahead_retry(oldest);
}

/* ------------------------------------------------------------------------------------------------------------- turns */

static void warn_of_oldest(struct ofp_group *group)
{
    const struct ofpi_collective *oldest = OFP_CONTAINER_OF(group->running.next, const struct ofpi_collective, node);
    bool has_changed = group->watched != oldest->sequence || group->watched_round != oldest->round;

    group->watched = oldest->sequence;
    group->watched_round = oldest->round;
    group->watched_periods = has_changed ? 1 : group->watched_periods + 1;
    if (group->watched_periods == PERIODS_BEFORE_WARNING) {
        struct ofp_collective_state state;

        ofpi_collective_describe(oldest, &state);
        ofpi_awaited_warn(group, &state);
    }
}

static void handle_patience_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofp_group *group = OFP_CONTAINER_OF(timer, struct ofp_group, patience);

    (void)now;
    if (ofp_list_empty(&group->running) || group->error)
        return;
    warn_of_oldest(group);
    group->asks = true;
    ofpi_group_schedule(group);
    ofpi_control_watch(group);
}

void ofpi_control_watch(struct ofp_group *group)
{
    if (group->patience.position || group->size == 1)
        return;
    group->patience.expired = handle_patience_expired;
    group->patience.deadline = ofpi_clock_read() + group->patience_period;
    /* Without memory for the timer nobody is asked, which changes no result. */
    ofpi_timer_start(group->domain, &group->patience);
}

static bool run_control(struct ofpi_turn *due)
{
    struct ofp_group *group = OFP_CONTAINER_OF(due, struct ofp_group, due);
    bool breaks, asks;

    if (group->has_heard)
        handle_control(group);
    /* A question that fails at once breaks the group, and makes it due again. */
    breaks = group->breaks;
    asks = group->asks && !group->error;
    group->breaks = group->asks = false;
    if (breaks && group->endpoint)
        send_broken(group);
    else if (asks && group->endpoint)
        send_questions(group);
    if (group->endpoint)
        post_control_receive(group);
    ofpi_drain_post(group);
    /* This may free the group. */
    ofpi_group_agreement_run(group);
    return true;
}

void ofpi_control_start(struct ofp_group *group)
{
    group->due.run = run_control;
    group->patience_period = PATIENCE;
    ofpi_control_init(group);
    if (group->size > 1)
        post_control_receive(group);
}

void ofpi_control_stop(struct ofp_group *group, bool can_send)
{
    if (group->breaks && can_send)
        send_broken(group);
    group->breaks = false;
    if (group->patience.position)
        ofpi_timers_stop(&group->domain->timers, &group->patience);
    if (!ofpi_group_agreement_stop(group, can_send))
        ofpi_control_end(group);
}
