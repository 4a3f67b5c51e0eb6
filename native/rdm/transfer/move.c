/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/path.h"

static void move_free(struct ofpi_rdm_move *move)
{
    if (move->packet)
        ofp_list_prepend(&move->path->endpoint->free, &move->packet->node);
    free(move);
}

static void end_if_over(struct ofpi_rdm_move *move)
{
    struct ofpi_rdm_path *path = move->path;

    if (move->under_way || (move->offset < move->length && !move->error))
        return;
    ofp_list_remove(&move->node);
    ofpi_rdm_let_go(path, move->local);
    if (path->state != OFPI_RDM_DROPPED)
        move->finish(move, move->error);
    move_free(move);
}

/* Where byte number `offset` of the move is here. */
static const struct ofpi_memory *local_at(const struct ofpi_rdm_move *move, uint64_t *offset)
{
    const struct ofpi_memory *memory = move->local->memory;

    for (; *offset >= memory->length; memory++)
        *offset -= memory->length;
    return memory;
}

static const struct ofpi_rdm_piece *remote_at(const struct ofpi_rdm_move *move, uint64_t *offset)
{
    const struct ofpi_rdm_piece *piece = move->remote;

    for (; *offset >= piece->length; piece++)
        *offset -= piece->length;
    return piece;
}

static void not_taken(struct ofpi_rdm_move *move, int error)
{
    move->under_way--;
    move->path->under_way--;
    move->error = error;
    ofpi_rdm_path_doom(move->path, error, NULL);
}

/* The next part, as far as one piece goes on both sides. */
static int move_part(struct ofpi_rdm_move *move)
{
    struct ofpi_path *path = &move->path->base;
    const struct ofpi_channel_ops *ops = path->channel->ops;
    uint64_t here = move->offset, there = move->offset, length = path->channel->limits.move_size;
    const struct ofpi_memory *local = local_at(move, &here);
    const struct ofpi_rdm_piece *remote = remote_at(move, &there);
    int result;

    length = length < local->length - here ? length : local->length - here;
    length = length < remote->length - there ? length : remote->length - there;
    move->offset += length;
    move->under_way++;
    move->path->under_way++;
    result = (move->put ? ops->put : ops->get)(path, local, here, remote->address + there, remote->key, length, move);
    if (result < 0)
        not_taken(move, -result);
    return result;
}

/* Returns how many parts the channel took. */
static int go_on(struct ofpi_rdm_move *move)
{
    struct ofpi_rdm_path *path = move->path;
    int count = 0;

    while (move->offset < move->length && !move->error && path->state == OFPI_RDM_UP) {
        if (path->under_way >= path->base.channel->limits.path_window) {
            ofpi_rdm_path_work_later(path);
            break;
        }
        count += move_part(move) == 0;
    }
    return count;
}

int ofpi_rdm_move(struct ofpi_rdm_path *path, bool put, struct ofpi_rdm_holds *local,
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
    ofp_list_append(&path->moves, &move->node);
    go_on(move);
    return 0;
}

int ofpi_rdm_move_word(struct ofpi_rdm_path *path, const struct ofpi_word *word,
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
        .under_way = 1,
    };
    ofp_list_append(&path->moves, &move->node);
    path->under_way++;
    result = path->base.channel->ops->atomic(&path->base, move->packet, word, move);
    if (result < 0)
        not_taken(move, -result);
    return 0;
}

int ofpi_rdm_moves_rest(struct ofpi_rdm_path *path)
{
    struct ofp_list *node, *following;
    int count = 0;

    OFP_LIST_EACH(node, following, &path->moves)
        count += go_on(OFP_CONTAINER_OF(node, struct ofpi_rdm_move, node));
    return count;
}

void ofpi_rdm_moved(struct ofpi_path *base, void *cookie, int error, int provider_error)
{
    struct ofpi_rdm_move *move = cookie;
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);

    path->under_way--;
    move->under_way--;
    /* Where the path broke with it the channel tells so itself. */
    if (error && !move->error) {
        move->error = error;
        move->provider_error = provider_error;
    }
    go_on(move);
    end_if_over(move);
}

void ofpi_rdm_moves_end(struct ofpi_rdm_path *path)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&path->moves)))
        move_free(OFP_CONTAINER_OF(node, struct ofpi_rdm_move, node));
    while (!ofp_list_empty(&path->holds))
        ofpi_rdm_let_go(path, OFP_CONTAINER_OF(path->holds.next, struct ofpi_rdm_holds, node));
}
