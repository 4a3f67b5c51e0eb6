/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

#define PROGRESS_LIMIT 64 /* events handled in one call */

/* What a path has: its line, and which end of it it is. */
struct wire {
    struct rdmfake_line *line;
    int side;
};

static struct rdmfake_endpoint *endpoint_of(const struct ofpi_channel *channel) { return channel->private; }
static struct wire *wire_of(const struct ofpi_path *path) { return path->private; }

/* ---------------------------------------------------------------------------------------------------------- packets */

static int buffers_open(struct ofpi_channel *channel, void *memory, size_t length)
{
    (void)memory, (void)length;
    endpoint_of(channel)->channel = channel;
    return 0;
}

static void buffers_close(struct ofpi_channel *channel) { (void)channel; }

static int receive(struct ofpi_channel *channel, struct ofpi_packet *packet)
{
    ofp_list_append(&endpoint_of(channel)->buffers, &packet->node);
    rdmfake_port_posted(endpoint_of(channel)->port);
    return 0;
}

static int send(struct ofpi_path *path, struct ofpi_packet *packet, bool more)
{
    const struct wire *wire = wire_of(path);
    bool is_inline = packet->length <= path->channel->limits.inline_size;
    struct rdmfake_event *sent = is_inline ? NULL : rdmfake_event_reserve(RDMFAKE_SENT, packet);
    int result = -ENOMEM;

    (void)more;
    if (is_inline || sent)
        result =
            rdmfake_line_put(wire->line, !wire->side, RDMFAKE_PACKET, packet->completed, packet->bytes, packet->length);
    if (result == -ENOBUFS)
        rdmfake_core->log(OFP_LOG_ERROR, "rdmfake", "a packet met no receive buffer: more was sent than was granted");
    if (result) {
        free(sent);
        return result;
    }
    if (is_inline)
        return OFP_POST_DONE;
    rdmfake_line_put_reserved(wire->line, wire->side, sent, 0);
    return OFP_POST_PENDING;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static int hold(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access)
{
    uint32_t remote = access & (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE);

    memory->key = 0;
    memory->address = (uint64_t)(uintptr_t)memory->base;
    if (!remote)
        return 0;
    return rdmfake_memory_add(rdmfake_owner(path->channel->endpoint->domain), memory->base, memory->address,
                              memory->length, remote, &memory->key);
}

static void release(struct ofpi_path *path, struct ofpi_memory *memory)
{
    if (memory->key)
        rdmfake_memory_remove(rdmfake_owner(path->channel->endpoint->domain), memory->key);
}

static const void *other_owner(const struct ofpi_path *path)
{
    const struct wire *wire = wire_of(path);

    return wire->line->ends[!wire->side]->owner;
}

static bool knows_key(const struct ofpi_path *path, uint64_t key)
{
    return rdmfake_memory_knows(other_owner(path), key);
}

/* A move of memory that has been made. It ends at once, or later, as that of a device. The domain's lock guards it. */
struct made_move {
    struct ofp_list node;
    struct ofp_timer timer;
    struct ofpi_path *path;
    struct rdmfake_event *end; /* owned */
    int error;
};

/* NULL: no memory. */
static struct made_move *create_move(struct ofpi_path *path, void *cookie)
{
    struct made_move *move = calloc(1, sizeof(*move));

    if (!move)
        return NULL;
    move->path = path;
    move->end = rdmfake_event_reserve(RDMFAKE_MOVED, cookie);
    if (move->end)
        return move;
    free(move);
    return NULL;
}

static void end_move(struct made_move *move)
{
    const struct wire *wire = wire_of(move->path);

    rdmfake_core->timer_stop(move->path->channel->endpoint->domain, &move->timer);
    if (ofp_list_linked(&move->node))
        ofp_list_remove(&move->node);
    rdmfake_line_put_reserved(wire->line, wire->side, move->end, move->error);
    free(move);
}

static void move_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    end_move(OFP_CONTAINER_OF(timer, struct made_move, timer));
}

static void end_move_later(struct made_move *move)
{
    struct rdmfake_endpoint *endpoint = endpoint_of(move->path->channel);

    move->timer.deadline = rdmfake_core->now() + endpoint->move_ns;
    move->timer.expired = move_timer_expired;
    ofp_list_append(&endpoint->moves, &move->node);
    rdmfake_core->timer_start(move->path->channel->endpoint->domain, &move->timer);
}

/* Of a path, or NULL: of all paths. */
static void end_late_moves(struct rdmfake_endpoint *endpoint, const struct ofpi_path *path)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &endpoint->moves) {
        struct made_move *move = OFP_CONTAINER_OF(node, struct made_move, node);

        if (!path || move->path == path)
            end_move(move);
    }
}

static int make_move(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                     uint64_t key, uint64_t length, void *cookie, bool put)
{
    struct made_move *move = create_move(path, cookie);

    if (!move)
        return -ENOMEM;
    move->error = rdmfake_line_lose_here(wire_of(path)->line)
                      ? ECONNRESET
                      : rdmfake_memory_copy(other_owner(path), key, address, (char *)local->base + offset, length, put);
    if (endpoint_of(path->channel)->move_ns)
        end_move_later(move);
    else
        end_move(move);
    return 0;
}

static int get(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie)
{
    return make_move(path, local, offset, address, key, length, cookie, false);
}

static int put(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie)
{
    return make_move(path, local, offset, address, key, length, cookie, true);
}

static int atomic(struct ofpi_path *path, struct ofpi_packet *packet, const struct ofpi_word *word, void *cookie)
{
    struct made_move *move = create_move(path, cookie);

    if (!move)
        return -ENOMEM;
    move->error = rdmfake_line_lose_here(wire_of(path)->line)
                      ? ECONNRESET
                      : rdmfake_memory_change(other_owner(path), word, packet->bytes);
    end_move(move);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ paths */

static int connect(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size)
{
    struct wire *wire = wire_of(path);
    struct rdmfake_address address;
    int error;

    memcpy(&address, path->peer->address, sizeof(address));
    if (address.process != (uint32_t)getpid()) {
        snprintf(text, text_size, "the rdmfake provider reaches this process only, not process %u", address.process);
        return -EHOSTUNREACH;
    }
    wire->line = rdmfake_line_ask(endpoint_of(path->channel)->port, &address, hello, length, &error);
    if (wire->line)
        wire->line->paths[0] = path;
    else if (error == -ECONNREFUSED)
        snprintf(text, text_size, "no endpoint of this process has the service %s", address.service);
    return error;
}

static int accept(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length)
{
    struct wire *wire = wire_of(path);
    int result;

    wire->line = rdmfake_line_hold((struct rdmfake_line *)(uintptr_t)request);
    wire->side = 1;
    wire->line->paths[1] = path;
    result = rdmfake_line_put(wire->line, 0, RDMFAKE_ACCEPT, false, hello, (uint32_t)length);
    if (!result)
        return 0;
    rdmfake_line_notify(wire->line, 0, RDMFAKE_REFUSE, EAGAIN);
    wire->line->paths[1] = NULL;
    rdmfake_line_release(wire->line);
    return result;
}

static void refuse(struct ofpi_channel *channel, uint64_t request, enum ofpi_refusal why)
{
    struct rdmfake_line *line = (struct rdmfake_line *)(uintptr_t)request;
    uint8_t hello[OFPI_HELLO_MAX];
    size_t length = why == OFPI_REFUSE_INCOMPATIBLE ? channel->user->first_hello(channel, hello) : 0;

    /* Without memory for it the hello is left out. */
    if (!length || rdmfake_line_put(line, 0, RDMFAKE_REFUSE, false, hello, (uint32_t)length) != 0)
        rdmfake_line_notify(line, 0, RDMFAKE_REFUSE, why == OFPI_REFUSE_LATER ? EAGAIN : 0);
}

static void close_path(struct ofpi_path *path)
{
    const struct wire *wire = wire_of(path);

    /* Moves that end with the path are reported before the event that it is closed. */
    end_late_moves(endpoint_of(path->channel), path);
    rdmfake_line_close(wire->line, wire->side);
}

static void probe(struct ofpi_path *path)
{
    const struct wire *wire = wire_of(path);

    rdmfake_line_notify(wire->line, wire->side, RDMFAKE_PROBED,
                        rdmfake_line_has_end(wire->line, !wire->side) ? 0 : OFP_EPEERLOST);
}

/* --------------------------------------------------------------------------------------------------------- arrivals */

static void asked(struct ofpi_channel *channel, const struct rdmfake_event *event)
{
    struct ofpi_path_request request = {
        .id = (uint64_t)(uintptr_t)event->line,
        .address = &event->line->ends[0]->address,
        .address_length = sizeof(event->line->ends[0]->address),
        .hello = event->bytes,
        .hello_length = event->length,
    };

    channel->user->requested(channel, &request);
}

static void packet_came(struct ofpi_channel *channel, struct ofpi_path *path, const struct rdmfake_event *event)
{
    struct ofp_list *node = ofp_list_pop(&endpoint_of(channel)->buffers);
    struct ofpi_packet *packet = OFP_CONTAINER_OF(node, struct ofpi_packet, node);

    packet->length = event->length;
    memcpy(packet->bytes, event->bytes, event->length);
    channel->user->arrived(channel, path, packet, NULL, 0);
}

static void refused(struct ofpi_path *path, const struct rdmfake_event *event)
{
    struct ofpi_meeting_end end = {.error = ECONNREFUSED, .deferred = event->flag, .text = "the peer refused"};
    char text[OFP_TEXT_MAX];
    int error = event->length
                    ? path->channel->user->first_hello_check(path, event->bytes, event->length, text, sizeof(text))
                    : 0;

    if (error)
        end = (struct ofpi_meeting_end){.error = -error, .text = text};
    path->channel->user->refused(path, &end);
}

static void ended(struct ofpi_path *path, const struct rdmfake_event *event)
{
    /* Nobody there any more, or only this line has ended: the other side's port tells. */
    path->channel->user->broken(path, &(struct ofpi_meeting_end){.error = event->error, .unsure = true});
}

static void probed(struct ofpi_path *path, const struct rdmfake_event *event)
{
    struct ofpi_meeting_end end = {.error = event->flag ? OFP_EPEERLOST : ECONNRESET,
                                   .process_gone = event->flag,
                                   .text = event->flag ? "its endpoint was closed" : "it has given the connection up"};

    path->channel->user->broken(path, &end);
}

/* What ends with the path comes for one that is closed too. */
static void own_event(struct ofpi_channel *channel, struct rdmfake_event *event)
{
    struct ofpi_path *path = event->path;

    if (event->kind == RDMFAKE_SENT)
        channel->user->sent(path, event->cookie);
    else if (event->kind == RDMFAKE_MOVED)
        channel->user->moved(path, event->cookie, event->error, 0);
    else
        channel->user->closed(path);
}

static void path_event(struct ofpi_channel *channel, struct ofpi_path *path, struct rdmfake_event *event)
{
    switch (event->kind) {
    case RDMFAKE_ACCEPT:
        rdmfake_line_notify(event->line, 1, RDMFAKE_CONFIRM, 0);
        channel->user->accepted(path, event->bytes, event->length);
        break;
    case RDMFAKE_REFUSE:
        refused(path, event);
        break;
    case RDMFAKE_CONFIRM:
        channel->user->confirmed(path);
        break;
    case RDMFAKE_PACKET:
        packet_came(channel, path, event);
        break;
    case RDMFAKE_PROBED:
        probed(path, event);
        break;
    default:
        ended(path, event);
        break;
    }
}

static void dispatch(struct ofpi_channel *channel, struct rdmfake_event *event)
{
    struct ofpi_path *path = event->line->paths[event->side];

    if (event->kind == RDMFAKE_ASK)
        asked(channel, event);
    else if (event->kind == RDMFAKE_SENT || event->kind == RDMFAKE_MOVED || event->kind == RDMFAKE_CLOSED)
        own_event(channel, event);
    else if (path && !event->line->closed[event->side])
        path_event(channel, path, event);
    else if (event->kind == RDMFAKE_PACKET)
        rdmfake_port_posted(endpoint_of(channel)->port);
}

/* ------------------------------------------------------------------------------------------ what has not left */

static bool is_idle(struct ofpi_channel *channel) { return rdmfake_port_held(endpoint_of(channel)->port) == 0; }

static uint64_t count_unsent(const struct ofpi_path *path)
{
    const struct wire *wire = wire_of(path);

    return rdmfake_line_held(wire->line, wire->side);
}

static int progress(struct ofpi_channel *channel)
{
    struct rdmfake_event *event;
    int count = 0;

    for (; count < PROGRESS_LIMIT && (event = rdmfake_port_take(endpoint_of(channel)->port)); count++) {
        dispatch(channel, event);
        rdmfake_event_free(event);
    }
    return count;
}

static bool arm(struct ofpi_channel *channel) { return rdmfake_port_arm(endpoint_of(channel)->port); }

static void disarm(struct ofpi_channel *channel) { rdmfake_port_disarm(endpoint_of(channel)->port); }

static void end(struct ofpi_channel *channel, uint64_t deadline)
{
    struct rdmfake_endpoint *endpoint = endpoint_of(channel);

    (void)deadline;
    end_late_moves(endpoint, NULL);
    rdmfake_port_close(endpoint->port);
    rdmfake_core->watch_remove(channel->endpoint->domain, &endpoint->doorbell);
    close(endpoint->doorbell.fd);
}

static void hush(struct ofpi_channel *channel) { rdmfake_port_hush(endpoint_of(channel)->port); }

#define COMMON                                                                                                         \
    .path_size = sizeof(struct wire), .buffers_open = buffers_open, .buffers_close = buffers_close,                    \
    .receive = receive, .send = send, .connect = connect, .accept = accept, .refuse = refuse, .close = close_path,     \
    .probe = probe, .stop_listening = hush, .is_idle = is_idle, .unsent = count_unsent, .progress = progress,          \
    .arm = arm, .disarm = disarm, .end = end
#define MOVES .register_memory = hold, .deregister_memory = release, .knows_key = knows_key

const struct ofpi_channel_ops rdmfake_channel_ops[RDMFAKE_KINDS] = {
    [RDMFAKE_PACKETS] = {COMMON, .properties = OFPI_CHANNEL_FULL},
    [RDMFAKE_PUTS] = {COMMON, MOVES, .properties = OFPI_CHANNEL_FULL | OFPI_CHANNEL_PUT, .put = put},
    [RDMFAKE_GETS] = {COMMON, MOVES, .properties = OFPI_CHANNEL_FULL | OFPI_CHANNEL_PUT | OFPI_CHANNEL_GET, .put = put,
                      .get = get, .atomic = atomic},
};
