/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/advance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "collective/ahead.h"
#include "collective/breaking.h"
#include "collective/control.h"
#include "collective/group_operation.h"
#include "collective/sized.h"
#include "collective/transfer.h"
#include "completion/request_finish.h"
#include "progress/flush.h"
#include "progress/wait.h"

/* The result of a turn. */
enum turn {
    TURN_WAITS, /* the end of a transfer makes it due */
    TURN_STUCK, /* the transmit queue is full: try again */
    TURN_MORE,  /* there is more to reduce or to copy, after others had their turn */
    TURN_ENDED
};

/* Copy the next piece of a block, from `offset` on. The end of the piece. */
static uint64_t copy_piece(const struct ofpi_collective *collective, const struct ofpi_step *step, uint64_t offset)
{
    char *to = ofpi_address_of_place(collective, step->to);
    const char *from = ofpi_address_of_place(collective, step->from);
    uint64_t length = step->length - offset;

    if (to == from)
        return step->length;
    if (length > OFPI_COPIED_PIECE)
        length = OFPI_COPIED_PIECE;
    memcpy(to + offset, from + offset, length);
    return offset + length;
}

/* While the transfers of the round run: copy a piece that is apart from them. False: nothing is left to copy. */
static bool copy_meanwhile(struct ofpi_collective *collective, const struct ofpi_step *steps, int count)
{
    for (int i = 0; i < count; i++)
        if (steps[i].kind == OFPI_STEP_COPY && steps[i].apart && collective->copied < steps[i].length) {
            collective->copied = copy_piece(collective, &steps[i], collective->copied);
            return collective->copied < steps[i].length;
        }
    return false;
}

static void end_round(struct ofpi_collective *collective, const struct ofpi_step *steps, int count)
{
    for (int i = 0; i < count; i++) {
        if (steps[i].kind == OFPI_STEP_RECEIVE || steps[i].kind == OFPI_STEP_REDUCE)
            ofpi_ahead_store(collective->group, steps[i].rank, collective->sequence);
        if (steps[i].kind != OFPI_STEP_COPY)
            continue;
        for (uint64_t copied = steps[i].apart ? collective->copied : 0; copied < steps[i].length;)
            copied = copy_piece(collective, &steps[i], copied);
    }
}

/* After the last round: continue with the data if the lengths are known now. False: the collective has ended. */
static bool start_data(struct ofpi_collective *collective)
{
    int result;

    if (!collective->is_sizing)
        return false;
    result = ofpi_sized_start_data(collective);
    if (result)
        ofpi_group_fail(collective->group, -result);
    return true;
}

static enum turn end_failed(struct ofpi_collective *collective)
{
    if (collective->in_flight)
        ofpi_transfers_cancel(collective);
    if (collective->in_flight)
        return TURN_WAITS;
    ofpi_collective_end(collective);
    return TURN_ENDED;
}

static enum turn run_rounds(struct ofpi_collective *collective)
{
    struct ofpi_step steps[OFPI_STEPS_MAX];

    while (!collective->error) {
        int count = ofpi_plan_build_round(&collective->plan, collective->round, steps);
        int result = count < 0 ? 0 : ofpi_transfers_advance(collective, steps, count);

        if (result == -EAGAIN)
            return TURN_STUCK;
        if (collective->error)
            break;
        if (result == -EINPROGRESS)
            return TURN_WAITS;
        if (result < 0) {
            ofpi_group_fail(collective->group, -result);
            break;
        }
        if (count < 0) {
            if (start_data(collective))
                continue;
            ofpi_ahead_ended(collective);
            ofpi_collective_end(collective);
            return TURN_ENDED;
        }
        if (!result) {
            if (!ofpi_landing_is_full(collective))
                return copy_meanwhile(collective, steps, count) ? TURN_MORE : TURN_WAITS;
            if (collective->turn_reduced < OFPI_REDUCED_PIECE)
                continue;
            return TURN_MORE;
        }
        /* A member sent less than this one asked for. */
        if (collective->awaited) {
            ofpi_group_report_mismatch(collective->group, OFP_PEER_ANY, collective->sequence, collective->signature);
            break;
        }
        end_round(collective, steps, count);
        collective->round++;
        ofpi_transfers_clear(collective);
    }
    return end_failed(collective);
}

/* Make the collective due again if it needs another turn. */
static bool run_turn(struct ofpi_turn *due)
{
    struct ofpi_collective *collective = OFP_CONTAINER_OF(due, struct ofpi_collective, due);
    enum turn turn;

    collective->is_in_turn = true;
    collective->turn_reduced = 0;
    turn = run_rounds(collective);
    if (turn == TURN_ENDED)
        return true;
    collective->is_in_turn = false;
    if (turn != TURN_WAITS)
        ofpi_collective_schedule(collective);
    return turn != TURN_STUCK;
}

void ofpi_collective_start(struct ofpi_collective *collective)
{
    struct ofp_group *group = collective->group;

    collective->sequence = group->sequence++;
    collective->round = 0;
    collective->error = collective->provider_error = 0;
    ofpi_transfers_clear(collective);
    ofp_list_append(&group->running, &collective->node);
    group->running_count++;
    group->signatures[collective->sequence % OFPI_SIGNATURES] = collective->signature;
    ofpi_ahead_serve(group);
    ofpi_control_watch(group);
    collective->due.run = run_turn;
    run_turn(&collective->due);
}

int ofpi_turns_run(struct ofpi_domain *domain)
{
    /* Turns that become due from now on wait for the next round of progress. */
    const struct ofp_list *last = domain->due_turns.previous;
    bool is_last = ofp_list_empty(&domain->due_turns);
    struct ofpi_turn *turn;
    int moved = 0;

    OFPI_CHECK(ofpi_domain_is_held(domain));
    /* The lock is released in the middle of a callback: its caller advances them. */
    if (domain->in_progress)
        return 0;
    while (!is_last && !ofp_list_empty(&domain->due_turns)) {
        struct ofp_list *node = ofp_list_pop(&domain->due_turns);

        is_last = node == last;
        turn = OFP_CONTAINER_OF(node, struct ofpi_turn, node);
        moved += turn->run(turn);
    }
    /* Flush now: a waiting thread may sleep next without leaving the domain. */
    ofpi_domain_flush(domain);
    return moved;
}

/* --------------------------------------------------------------------------------------------------------------- end */

static void finish_request(struct ofpi_collective *collective)
{
    struct ofpi_domain *domain = collective->group->domain;
    struct ofp_request *request = collective->request;
    struct ofp_completion completion = {
        .error = collective->error, .provider_error = collective->provider_error, .source = OFP_PEER_UNKNOWN};

    if (!request->prepared) {
        free(collective->temporary);
        collective->temporary = NULL;
    }
    /* If the request was abandoned, its end frees the collective. */
    ofpi_request_finish(request, &completion);
    if (domain->leader || domain->followers)
        ofpi_domain_wake(domain);
}

void ofpi_collective_end(struct ofpi_collective *collective)
{
    struct ofp_group *group = collective->group;
    struct ofpi_endpoint *endpoint = group->endpoint;

    OFPI_CHECK(!collective->in_flight);
    ofpi_turn_cancel(&collective->due);
    ofp_list_remove(&collective->node);
    group->running_count--;
    collective->is_in_turn = false;
    if (ofpi_group_is_over(group))
        ofpi_group_leave_endpoint(group);
    if (collective->operation)
        ofpi_group_operation_end(collective, endpoint);
    else
        finish_request(collective);
}
