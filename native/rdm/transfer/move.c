/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/path.h"
#include "ofipy/check.h"

static void free_move(struct ofpi_rdm_move *move)
{
    if (move->packet)
        ofp_list_prepend(&move->path->endpoint->free, &move->packet->node);
    free(move);
}

static void end_finished_move(struct ofpi_rdm_move *move)
{
    struct ofpi_rdm_path *path = move->path;

    if (move->in_flight || (move->offset < move->length && !move->error))
        return;
    ofp_list_remove(&move->node);
    ofpi_rdm_memory_deregister(path, move->local);
    if (path->state != OFPI_RDM_DROPPED)
        move->finish(move, move->error);
    free_move(move);
}

/* Local memory of byte `offset` of the move; `offset` becomes relative to it. */
static const struct ofpi_memory *find_local_memory(const struct ofpi_rdm_move *move, uint64_t *offset)
{
    const struct ofpi_memory *memory = move->local->memory;

    for (; *offset >= memory->length; memory++)
        *offset -= memory->length;
    return memory;
}

static const struct ofpi_rdm_piece *find_remote_piece(const struct ofpi_rdm_move *move, uint64_t *offset)
{
    const struct ofpi_rdm_piece *piece = move->remote;

    for (; *offset >= piece->length; piece++)
        *offset -= piece->length;
    return piece;
}

static void fail_part(struct ofpi_rdm_move *move, int error)
{
    move->in_flight--;
    move->path->in_flight--;
    move->error = error;
    ofpi_rdm_path_mark_failed(move->path, error, NULL);
}

/* Move the next part: up to the end of a piece on either side. */
static int move_part(struct ofpi_rdm_move *move)
{
    struct ofpi_path *path = &move->path->base;
    const struct ofpi_channel_ops *ops = path->channel->ops;
    uint64_t here = move->offset, there = move->offset, length = path->channel->limits.move_size;
    const struct ofpi_memory *local = find_local_memory(move, &here);
    const struct ofpi_rdm_piece *remote = find_remote_piece(move, &there);
    int result;

    length = length < local->length - here ? length : local->length - here;
    length = length < remote->length - there ? length : remote->length - there;
    OFP_CHECK(length > 0 && length <= move->length - move->offset);
    move->offset += length;
    move->in_flight++;
    move->path->in_flight++;
    result = (move->put ? ops->put : ops->get)(path, local, here, remote->address + there, remote->key, length, move);
    if (result < 0)
        fail_part(move, -result);
    return result;
}

/* Returns how many parts the channel accepted. */
static int resume_move(struct ofpi_rdm_move *move)
{
    struct ofpi_rdm_path *path = move->path;
    int count = 0;

    while (move->offset < move->length && !move->error && path->state == OFPI_RDM_UP) {
        if (path->in_flight >= path->base.channel->limits.path_window) {
            ofpi_rdm_path_schedule(path);
            break;
        }
        count += move_part(move) == 0;
    }
    return count;
}

int ofpi_rdm_move(struct ofpi_rdm_path *path, bool put, struct ofpi_rdm_registration *local,
                  const struct ofpi_rdm_piece *remote, uint32_t count,
                  void (*finish)(struct ofpi_rdm_move *move, int error), void *owner)
{
    struct ofpi_rdm_move *move = calloc(1, sizeof(*move) + count * sizeof(move->remote[0]));

    if (!move)
        return -ENOMEM;
    *move = (struct ofpi_rdm_move){.path = path, .local = local, .finish = finish, .owner = owner, .put = put};
    memcpy(move->remote, remote, count * sizeof(move->remote[0]));
    for (uint32_t i = 0; i < local->count; i++)
        move->length += local->memory[i].length;
    OFP_CHECK(path->state == OFPI_RDM_UP && move->length > 0);
    ofp_list_append(&path->moves, &move->node);
    resume_move(move);
    return 0;
}

int ofpi_rdm_atomic_start(struct ofpi_rdm_path *path, const struct ofpi_word *word,
                          void (*finish)(struct ofpi_rdm_move *move, int error), void *owner)
{
    struct ofpi_rdm_move *move = calloc(1, sizeof(*move));
    int result;

    if (!move)
        return -ENOMEM;
    *move = (struct ofpi_rdm_move){
        .path = path,
        .packet = OFP_CONTAINER_OF(ofp_list_pop(&path->endpoint->free), struct ofpi_packet, node),
        .finish = finish,
        .owner = owner,
        .in_flight = 1,
    };
    ofp_list_append(&path->moves, &move->node);
    path->in_flight++;
    result = path->base.channel->ops->atomic(&path->base, move->packet, word, move);
    if (result < 0)
        fail_part(move, -result);
    return 0;
}

int ofpi_rdm_moves_resume(struct ofpi_rdm_path *path)
{
    struct ofp_list *node, *following;
    int count = 0;

    OFP_LIST_EACH(node, following, &path->moves)
        count += resume_move(OFP_CONTAINER_OF(node, struct ofpi_rdm_move, node));
    return count;
}

void ofpi_rdm_moved(struct ofpi_path *base, void *cookie, int error, int provider_error)
{
    struct ofpi_rdm_move *move = cookie;
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);

    OFP_CHECK(move->path == path && move->in_flight > 0 && path->in_flight >= move->in_flight);
    path->in_flight--;
    move->in_flight--;
    /* If the path broke with it, the channel reports that itself. */
    if (error && !move->error) {
        move->error = error;
        move->provider_error = provider_error;
    }
    resume_move(move);
    end_finished_move(move);
}

void ofpi_rdm_moves_end(struct ofpi_rdm_path *path)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&path->moves)))
        free_move(OFP_CONTAINER_OF(node, struct ofpi_rdm_move, node));
    while (!ofp_list_empty(&path->registrations))
        ofpi_rdm_memory_deregister(path,
                                   OFP_CONTAINER_OF(path->registrations.next, struct ofpi_rdm_registration, node));
}
