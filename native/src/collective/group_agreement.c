/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/group_agreement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "collective/awaited.h"
#include "collective/breaking.h"
#include "collective/control_message.h"
#include "completion/request_finish.h"
#include "progress/progress.h"
#include "progress/wait.h"

#define PERIODS_OF_PATIENCE 4u     /* messages are repeated so often in group->patience_period */
#define PERIODS_BEFORE_WARNING 40u /* also those after which a decision is no longer kept for a group that is closed */

/* ---------------------------------------------------------------------------------------------------------- messages */

/* Called from within a post, perhaps: the machine is told in the next turn. */
static void mark_unreachable(struct ofp_group *group, uint32_t rank)
{
    if (rank >= group->size)
        return;
    group->members[rank].is_gone = true;
    group->agreement->has_gone = true;
    if (group->endpoint && (!group->closed || group->serves))
        ofpi_group_schedule(group);
}

static void complete_agreement_send(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                    struct ofp_completion *completion)
{
    struct ofp_group *group = OFP_CONTAINER_OF(owner, struct ofpi_group_agreement, send)->group;

    (void)endpoint;
    (void)op_flags;
    if (ofpi_error_is_loss(completion->error))
        mark_unreachable(group, ofpi_group_find_rank(group, completion->source));
    ofpi_group_release(group);
}

static void post_agreement_message(struct ofpi_agreement *machine, uint32_t rank,
                                   const struct ofpi_agreement_message *message, const uint32_t *values)
{
    struct ofpi_group_agreement *agreement = OFP_CONTAINER_OF(machine, struct ofpi_group_agreement, machine);
    struct ofp_group *group = agreement->group;
    uint64_t length = sizeof(*message);

    *agreement->outgoing = *message;
    if (values) {
        memcpy(agreement->outgoing + 1, values, group->size * sizeof(*values));
        length += group->size * sizeof(*values);
    }
    /* Without memory it is repeated later. */
    if (group->endpoint &&
        ofpi_error_is_loss(-ofpi_control_post(group, rank, agreement->outgoing, length, &agreement->send)))
        mark_unreachable(group, rank);
}

/* ---------------------------------------------------------------------------------------------------------- creation */

static void handle_period_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_group_agreement *agreement = OFP_CONTAINER_OF(timer, struct ofpi_group_agreement, timer);

    (void)now;
    agreement->retries = true;
    ofpi_group_schedule(agreement->group);
}

/* The group's agreement, created at first use; NULL: there is no memory. */
static struct ofpi_group_agreement *find_agreement(struct ofp_group *group)
{
    uint64_t outgoing = sizeof(struct ofpi_agreement_message) + ((group->size + UINT64_C(1)) & ~UINT64_C(1)) * 4;
    struct ofpi_group_agreement *agreement = group->agreement;

    if (agreement)
        return agreement;
    /* One block, which the group frees: the structure, the message, the memory of the machine. */
    agreement = calloc(1, sizeof(*agreement) + outgoing + ofpi_agreement_compute_size(group->size));
    if (!agreement)
        return NULL;
    agreement->outgoing = (struct ofpi_agreement_message *)(void *)(agreement + 1);
    agreement->group = group;
    agreement->send.finish = complete_agreement_send;
    agreement->timer.expired = handle_period_expired;
    ofpi_agreement_init(&agreement->machine, group->size, group->rank, !group->is_on_one_host,
                        (char *)agreement->outgoing + outgoing);
    agreement->machine.send = post_agreement_message;
    group->agreement = agreement;
    return agreement;
}

/* --------------------------------------------------------------------------------------------------------------- end */

static void finish_call(struct ofpi_group_agreement *agreement, int error)
{
    struct ofpi_agreement_call *call = agreement->call;
    struct ofpi_domain *domain = agreement->group->domain;
    struct ofp_completion completion = {.error = error, .source = OFP_PEER_UNKNOWN};

    agreement->call = NULL;
    if (!call)
        return;
    if (!error) {
        call->result->flags = agreement->machine.decision.flags;
        memcpy(call->result->values, agreement->machine.decision.values,
               agreement->group->size * sizeof(*call->result->values));
    }
    /* If the request was abandoned, its end frees the call. */
    ofpi_request_finish(call->request, &completion);
    if (domain->leader || domain->followers)
        ofpi_domain_wake(domain);
}

/* Members that are dead for all others break the group. */
static void mark_dead_members(struct ofpi_group_agreement *agreement)
{
    struct ofp_group *group = agreement->group;
    bool has_dead = false;

    for (uint32_t rank = 0; rank < group->size; rank++) {
        if (agreement->machine.decision.values[rank] != OFPI_AGREEMENT_DEAD)
            continue;
        ofpi_group_mark_lost(group, rank);
        has_dead = true;
    }
    if (has_dead)
        ofpi_group_fail(group, OFP_EPEERLOST);
}

/* This member can agree no more. */
static int fail_group(struct ofpi_group_agreement *agreement, enum ofpi_agreement_outcome outcome)
{
    struct ofp_group *group = agreement->group;
    bool is_expelled = outcome == OFPI_AGREEMENT_EXPELLED;

    if (outcome == OFPI_AGREEMENT_ABANDONED)
        return ECANCELED;
    group->state.cause = is_expelled ? OFP_GROUP_CAUSE_EXPELLED : OFP_GROUP_CAUSE_MINORITY;
    if (is_expelled)
        ofpi_group_mark_lost(group, group->rank);
    ofpi_group_fail(group, OFP_EPEERLOST);
    return OFP_EPEERLOST;
}

bool ofpi_group_agreement_is_needed(const struct ofp_group *group)
{
    const struct ofpi_group_agreement *agreement = group->agreement;

    return agreement && !agreement->machine.is_open && ofpi_agreement_is_pending(&agreement->machine) &&
           agreement->periods < PERIODS_BEFORE_WARNING;
}

/* After each step of the machine. */
static void update_agreement(struct ofpi_group_agreement *agreement)
{
    struct ofp_group *group = agreement->group;
    const struct ofpi_agreement *machine = &agreement->machine;
    bool has_failed = machine->outcome > OFPI_AGREEMENT_DECIDED;

    if (agreement->call && !machine->is_open) {
        agreement->periods = 0;
        if (!has_failed)
            mark_dead_members(agreement);
        finish_call(agreement, has_failed ? fail_group(agreement, machine->outcome) : 0);
    } else if (has_failed && !group->state.cause) {
        fail_group(agreement, machine->outcome);
    }
    if (agreement->timer.position || !group->endpoint || !(machine->is_open || ofpi_group_agreement_is_needed(group)))
        return;
    agreement->timer.deadline = ofpi_clock_read() + group->patience_period / PERIODS_OF_PATIENCE;
    /* Without memory for the timer nothing is repeated, which is needed only when members die. */
    ofpi_timer_start(group->domain, &agreement->timer);
}

void ofpi_group_agreement_end_service(struct ofp_group *group)
{
    if (group->agreement && group->agreement->timer.position)
        ofpi_timers_stop(&group->domain->timers, &group->agreement->timer);
    if (!group->serves)
        return;
    group->serves = false;
    ofpi_control_end(group);
    if (ofpi_group_is_over(group))
        ofpi_group_leave_endpoint(group);
    ofpi_group_release(group);
}

bool ofpi_group_agreement_stop(struct ofp_group *group, bool can_send)
{
    struct ofpi_group_agreement *agreement = group->agreement;

    if (agreement && can_send)
        ofpi_agreement_abandon(&agreement->machine);
    if (agreement)
        finish_call(agreement, ECANCELED);
    if (can_send && ofpi_group_agreement_is_needed(group)) {
        group->serves = true;
        ofp_fetch_add(&group->uses, 1);
        return true;
    }
    ofpi_group_agreement_end_service(group);
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- turns */

bool ofpi_group_agreement_receive(struct ofp_group *group)
{
    const struct ofpi_agreement_message *message = (const struct ofpi_agreement_message *)(void *)group->incoming;
    uint64_t values = group->size * sizeof(uint32_t);
    struct ofpi_group_agreement *agreement;

    if (message->kind < OFPI_AGREEMENT_POKE)
        return false;
    if (group->incoming_length < sizeof(*message) || message->rank >= group->size || message->rank == group->rank ||
        group->incoming_length != sizeof(*message) + (message->has_values ? values : 0))
        return true;
    agreement = find_agreement(group);
    if (!agreement)
        return true;
    ofpi_agreement_receive(&agreement->machine, message,
                           message->has_values ? (const uint32_t *)(const void *)(message + 1) : NULL);
    update_agreement(agreement);
    return true;
}

static void report_unreachable_members(struct ofpi_group_agreement *agreement)
{
    struct ofp_group *group = agreement->group;

    agreement->has_gone = false;
    for (uint32_t rank = 0; rank < group->size; rank++) {
        if (!group->members[rank].is_gone)
            continue;
        group->members[rank].is_gone = false;
        ofpi_agreement_mark_suspected(&agreement->machine, rank);
    }
}

static void describe_agreement(const struct ofpi_group_agreement *agreement, struct ofp_collective_state *state)
{
    const struct ofpi_agreement *machine = &agreement->machine;
    bool coordinates = machine->phase != OFPI_PHASE_IDLE;

    *state = (struct ofp_collective_state){.sequence = machine->number - 1, .kind = OFP_COLLECTIVE_AGREEMENT};
    for (uint32_t rank = 0; rank < machine->size; rank++) {
        if (machine->is_suspected[rank] || rank == machine->rank || (coordinates && machine->has_answered[rank]))
            continue;
        ofpi_awaited_add(state, rank);
        /* The others wait for the coordinator, which is the first. */
        if (!coordinates)
            return;
    }
}

static void retry_agreement(struct ofpi_group_agreement *agreement)
{
    struct ofp_collective_state state;

    agreement->retries = false;
    agreement->periods++;
    ofpi_agreement_retry(&agreement->machine);
    if (agreement->periods != PERIODS_BEFORE_WARNING || !agreement->machine.is_open)
        return;
    describe_agreement(agreement, &state);
    ofpi_awaited_warn(agreement->group, &state);
}

void ofpi_group_agreement_run(struct ofp_group *group)
{
    struct ofpi_group_agreement *agreement = group->agreement;

    if (!agreement || !group->endpoint)
        return;
    if (agreement->has_gone)
        report_unreachable_members(agreement);
    if (agreement->retries)
        retry_agreement(agreement);
    update_agreement(agreement);
    if (group->serves && !ofpi_group_agreement_is_needed(group))
        ofpi_group_agreement_end_service(group);
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static void release_call(struct ofpi_kept *kept)
{
    struct ofpi_agreement_call *call = OFP_CONTAINER_OF(kept, struct ofpi_agreement_call, kept);
    struct ofp_group *group = call->group;

    free(call);
    ofpi_group_release(group);
}

static void query_call(const struct ofpi_kept *kept, struct ofp_collective_state *state)
{
    describe_agreement(OFP_CONTAINER_OF(kept, const struct ofpi_agreement_call, kept)->group->agreement, state);
}

static int check_agreement(const struct ofp_group *group, uint32_t value, const struct ofp_agreement_result *result)
{
    const struct ofpi_group_agreement *agreement = group->agreement;

    if (value == OFP_GROUP_DEAD || !result)
        return -EINVAL;
    if (group->closed)
        return -ECANCELED;
    if (!group->peers)
        return -ENOTCONN;
    if (agreement && agreement->machine.is_open)
        return -EBUSY;
    return agreement && agreement->machine.outcome > OFPI_AGREEMENT_DECIDED ? -OFP_EPEERLOST : 0;
}

static ofp_request_t start_agreement(struct ofp_group *group, uint64_t flags, uint32_t value,
                                     struct ofp_agreement_result *result)
{
    struct ofpi_group_agreement *agreement = find_agreement(group);
    struct ofpi_agreement_call *call = agreement ? calloc(1, sizeof(*call)) : NULL;
    struct ofp_request *request = call ? ofpi_request_allocate(group->endpoint) : NULL;
    ofp_request_t handle;

    if (!request) {
        free(call);
        return -ENOMEM;
    }
    handle = ofpi_handle_of_request(request);
    *call = (struct ofpi_agreement_call){
        .kept = {.release = release_call, .query = query_call}, .group = group, .request = request, .result = result};
    ofp_fetch_add(&group->uses, 1);
    request->kept = &call->kept;
    agreement->call = call;
    agreement->periods = 0;
    agreement->has_gone = false;
    for (uint32_t rank = 0; rank < group->size; rank++)
        group->members[rank].is_gone = false;
    ofpi_agreement_start(&agreement->machine, flags, value);
    update_agreement(agreement);
    return handle;
}

ofp_request_t ofp_group_agree(struct ofp_group *group, uint64_t flags, uint32_t value,
                              struct ofp_agreement_result *result)
{
    ofp_request_t handle = ofpi_domain_enter(group->domain);

    if (handle)
        return handle;
    handle = check_agreement(group, value, result);
    if (!handle)
        handle = start_agreement(group, flags, value, result);
    ofpi_domain_leave(group->domain);
    return handle;
}

int ofp_group_abort(struct ofp_group *group, const char *reason)
{
    int result = ofpi_domain_enter(group->domain);

    if (result)
        return result;
    result = group->closed ? -ECANCELED : !group->peers ? -ENOTCONN : 0;
    if (!result) {
        ofpi_group_mark_aborted(group, group->rank, reason);
        ofpi_group_fail(group, ECONNABORTED);
    }
    ofpi_domain_leave(group->domain);
    return result;
}
