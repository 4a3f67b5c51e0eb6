/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/transfer.h"

#include <errno.h>

#include "atomic/reduce.h"
#include "base/check.h"
#include "collective/ahead.h"
#include "collective/breaking.h"
#include "collective/message.h"
#include "object/domain.h"

/* --------------------------------------------------------------------------------------------------------- messages */

/*
 * Post a message between this member and `rank`. The collective names it, for a cancel. -EINPROGRESS: the
 * member has to start earlier collectives first.
 */
static int post_message(struct ofpi_collective *collective, uint16_t code, uint32_t rank, struct ofpi_owner *owner,
                        const struct ofpi_memory *memory, uint64_t length)
{
    struct ofpi_message message = {.code = code,
                                   .rank = rank,
                                   .sequence = collective->sequence,
                                   .data = collective->signature,
                                   .context = collective,
                                   .region = memory->region,
                                   .offset = memory->offset,
                                   .length = length};
    int result = code == OFP_INTERNAL_SEND ? ofpi_ahead_check(collective, rank) : 0;

    if (result)
        return result;
    collective->in_flight++;
    if (code == OFP_INTERNAL_RECV)
        collective->awaited += length;
    result = ofpi_message_post(collective->group, &message, owner);
    if (result) {
        collective->in_flight--;
        if (code == OFP_INTERNAL_RECV)
            collective->awaited -= length;
    }
    return result;
}

static struct ofpi_memory memory_of_place(const struct ofpi_collective *collective, struct ofpi_place place,
                                          uint64_t offset)
{
    struct ofpi_memory memory = collective->buffers[place.buffer];

    memory.offset += place.offset + offset;
    memory.address += place.offset + offset;
    return memory;
}

static struct ofpi_memory memory_of_landing(const struct ofpi_collective *collective,
                                            const struct ofpi_landing *landing)
{
    char *address = collective->temporary + collective->temporary_size +
                    (uint64_t)(landing - collective->landings) * collective->landing_size;

    return (struct ofpi_memory){OFP_REGION_PROCESS, (uint64_t)(uintptr_t)address, address};
}

/* -------------------------------------------------------------------------------------------------------------- ends */

/* What a transport that matches receives itself had in flight to a lost member ends as cancelled, or with EIO. */
static int find_error(const struct ofpi_collective *collective, const struct ofp_completion *completion)
{
    const struct ofpi_endpoint *endpoint = collective->group->endpoint;
    bool may_be_loss = endpoint && endpoint->info.offloads_matching && !endpoint->closing;

    return may_be_loss && (completion->error == ECANCELED || completion->error == EIO) ? OFP_EPEERLOST
                                                                                       : completion->error;
}

static void end_message(struct ofpi_collective *collective, bool is_receive, const struct ofp_completion *completion)
{
    int error = find_error(collective, completion);

    OFPI_CHECK(collective->in_flight);
    collective->in_flight--;
    if (is_receive)
        collective->awaited -= completion->length;
    /* A message of another collective may be longer, too: that it is another one says more. */
    if (is_receive && completion->flags & OFP_COMPLETED_REMOTE_CQ_DATA && completion->data != collective->signature)
        ofpi_group_report_mismatch(collective->group, completion->source, collective->sequence, completion->data);
    else if (is_receive && error == OFP_ETRUNC)
        /* Such a transport may not report the data of a longer message: which call it is of stays unknown here. */
        ofpi_group_report_mismatch(collective->group, completion->source, collective->sequence, collective->signature);
    else if (error && !collective->error) {
        ofpi_collective_fail(collective, error, completion->provider_error);
        ofpi_group_report_loss(collective->group, completion->source, error);
    }
}

static void complete_receive(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                             struct ofp_completion *completion)
{
    struct ofpi_collective *collective = OFP_CONTAINER_OF(owner, struct ofpi_collective, receive);

    (void)endpoint;
    (void)op_flags;
    OFPI_CHECK(collective->arrived_count < OFPI_STEPS_MAX);
    collective->arrived[collective->arrived_count++] = completion->source;
    end_message(collective, true, completion);
    if (!collective->in_flight)
        ofpi_collective_schedule(collective);
}

static void complete_send(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                          struct ofp_completion *completion)
{
    struct ofpi_collective *collective = OFP_CONTAINER_OF(owner, struct ofpi_collective, send);

    (void)endpoint;
    (void)op_flags;
    end_message(collective, false, completion);
    if (!collective->in_flight)
        ofpi_collective_schedule(collective);
}

static void complete_piece_send(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                struct ofp_completion *completion)
{
    struct ofpi_collective *collective = OFP_CONTAINER_OF(owner, struct ofpi_collective, piece_send);

    (void)endpoint;
    (void)op_flags;
    collective->pieces_leaving--;
    end_message(collective, false, completion);
    ofpi_collective_schedule(collective);
}

static void complete_landing(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                             struct ofp_completion *completion)
{
    struct ofpi_landing *landing = OFP_CONTAINER_OF(owner, struct ofpi_landing, owner);

    (void)endpoint;
    (void)op_flags;
    landing->state = completion->error ? OFPI_LANDING_FREE : OFPI_LANDING_FULL;
    end_message(landing->collective, true, completion);
    ofpi_collective_schedule(landing->collective);
}

void ofpi_transfers_init(struct ofpi_collective *collective)
{
    collective->receive.finish = complete_receive;
    collective->send.finish = complete_send;
    collective->piece_send.finish = complete_piece_send;
    for (uint32_t i = 0; i < OFPI_REDUCED_PIECES; i++) {
        collective->landings[i].owner.finish = complete_landing;
        collective->landings[i].collective = collective;
    }
}

void ofpi_transfers_clear(struct ofpi_collective *collective)
{
    OFPI_CHECK(!collective->in_flight);
    collective->posted = collective->arrived_count = 0;
    collective->awaited = collective->piece_posted = collective->piece_reduced = collective->piece_sent =
        collective->copied = 0;
    for (uint32_t i = 0; i < OFPI_REDUCED_PIECES; i++)
        collective->landings[i].state = OFPI_LANDING_FREE;
}

/* ------------------------------------------------------------------------------------------------------------ pieces */

static uint64_t compute_piece_length(const struct ofpi_step *step, uint64_t offset)
{
    uint64_t rest = step->length - offset;

    return rest < OFPI_REDUCED_PIECE ? rest : OFPI_REDUCED_PIECE;
}

/* Post receives for pieces, as far as there are landings. */
static int post_landings(struct ofpi_collective *collective, const struct ofpi_step *step)
{
    for (uint32_t i = 0; i < collective->landing_count && collective->piece_posted < step->length; i++) {
        struct ofpi_landing *landing = &collective->landings[i];
        uint64_t offset = collective->piece_posted, length = compute_piece_length(step, offset);
        struct ofpi_memory memory = memory_of_landing(collective, landing);
        int result;

        if (landing->state != OFPI_LANDING_FREE)
            continue;
        /* The post may end the receive. */
        landing->state = OFPI_LANDING_POSTED;
        landing->offset = offset;
        result = post_message(collective, OFP_INTERNAL_RECV, step->rank, &landing->owner, &memory, length);
        if (result) {
            landing->state = OFPI_LANDING_FREE;
            return result;
        }
        collective->piece_posted += length;
    }
    return 0;
}

/* Reduce one piece if one has landed. */
static void compute_piece(struct ofpi_collective *collective, const struct ofpi_step *step)
{
    for (uint32_t i = 0; i < collective->landing_count; i++) {
        struct ofpi_landing *landing = &collective->landings[i];
        uint64_t length = compute_piece_length(step, landing->offset);
        const char *message = memory_of_landing(collective, landing).address;
        const char *mine = ofpi_address_of_place(collective, step->from) + landing->offset;

        if (landing->state != OFPI_LANDING_FULL)
            continue;
        ofpi_reduction_execute(collective->call.atomic_op, collective->call.datatype,
                               ofpi_address_of_place(collective, step->to) + landing->offset,
                               step->lower ? message : mine, step->lower ? mine : message,
                               length / collective->plan.element);
        landing->state = OFPI_LANDING_FREE;
        collective->piece_reduced += length;
        collective->turn_reduced += length;
        return;
    }
}

static int post_piece_sends(struct ofpi_collective *collective, const struct ofpi_step *step)
{
    while (collective->piece_sent < step->length && collective->pieces_leaving < OFPI_REDUCED_PIECES) {
        uint64_t offset = collective->piece_sent, length = compute_piece_length(step, offset);
        struct ofpi_memory memory = memory_of_place(collective, step->from, offset);
        int result;

        collective->pieces_leaving++;
        result = post_message(collective, OFP_INTERNAL_SEND, step->rank, &collective->piece_send, &memory, length);
        if (result) {
            collective->pieces_leaving--;
            return result;
        }
        collective->piece_sent += length;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- round */

/* The steps of a round whose messages travel in pieces: at most one is reduced here, and one by its receiver. */
struct pieces {
    const struct ofpi_step *reduction, *sent;
};

static struct pieces find_pieces(const struct ofpi_step *steps, int count)
{
    struct pieces pieces = {NULL, NULL};

    for (int i = 0; i < count; i++) {
        if (steps[i].kind == OFPI_STEP_REDUCE)
            pieces.reduction = &steps[i];
        else if (steps[i].kind == OFPI_STEP_SEND && steps[i].reduced)
            pieces.sent = &steps[i];
    }
    return pieces;
}

static int post_whole_message(struct ofpi_collective *collective, const struct ofpi_step *step)
{
    bool is_send = step->kind == OFPI_STEP_SEND;
    struct ofpi_memory memory = memory_of_place(collective, is_send ? step->from : step->to, 0);

    return post_message(collective, is_send ? OFP_INTERNAL_SEND : OFP_INTERNAL_RECV, step->rank,
                        is_send ? &collective->send : &collective->receive, &memory, step->length);
}

/* Receives first, so that messages find them; then sends. */
static int post_whole_messages(struct ofpi_collective *collective, const struct ofpi_step *steps, int count)
{
    for (; collective->posted < 2u * (uint32_t)count; collective->posted++) {
        bool is_first = collective->posted < (uint32_t)count;
        const struct ofpi_step *step = &steps[is_first ? collective->posted : collective->posted - (uint32_t)count];
        enum ofpi_step_kind wanted = is_first ? OFPI_STEP_RECEIVE : OFPI_STEP_SEND;
        int result = step->kind == wanted && !step->reduced ? post_whole_message(collective, step) : 0;

        if (result)
            return result;
    }
    return 0;
}

static bool check_transfers_over(const struct ofpi_collective *collective, const struct pieces *pieces)
{
    return !collective->in_flight && (!pieces->reduction || collective->piece_reduced == pieces->reduction->length) &&
           (!pieces->sent || collective->piece_sent == pieces->sent->length);
}

int ofpi_transfers_advance(struct ofpi_collective *collective, const struct ofpi_step *steps, int count)
{
    struct pieces pieces = find_pieces(steps, count);
    int result = 0;

    collective->is_held = false;
    if (pieces.reduction) {
        compute_piece(collective, pieces.reduction);
        result = post_landings(collective, pieces.reduction);
    }
    if (!result)
        result = post_whole_messages(collective, steps, count);
    if (!result && pieces.sent)
        result = post_piece_sends(collective, pieces.sent);
    return result ? result : check_transfers_over(collective, &pieces);
}

bool ofpi_landing_is_full(const struct ofpi_collective *collective)
{
    for (uint32_t i = 0; i < collective->landing_count; i++)
        if (collective->landings[i].state == OFPI_LANDING_FULL)
            return true;
    return false;
}

void ofpi_transfers_cancel(struct ofpi_collective *collective) { ofpi_messages_cancel(collective->group, collective); }
