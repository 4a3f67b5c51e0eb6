/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hook `trace`: records the operations of an endpoint, in the log and in a file for trace viewers. It writes the
 * file when the endpoint closes, so that writing does not disturb the traced operations.
 *
 * Messages between two endpoints do not overtake each other, so the nth message that one sends is the nth that arrives
 * at the other. Both count, and both identify the arrow by the two endpoints and n. Both restart at 0 when a connection
 * that was up is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "in_tree.h"
#include "ofipy/ofp.h"
#include "ofipy/operation.h"
#include "trace_file.h"

#define FIRST_ROOM 1024
#define HASH_START UINT64_C(0xcbf29ce484222325)

/*
 * The message counts of one remote endpoint. It lives as long as the endpoint; a hook's bytes of a peer are zeroed when
 * the peer connects again.
 */
struct pair {
    struct pair *next;
    uint64_t address; /* hash of the peer's address; the key of the pair */
    uint64_t peer;    /* hash of a name that the peer's process also knows; 0: unknown, so no arrows */
    uint64_t sent, arrived;
    uint32_t connections; /* connections that were up and are lost; the same number at both ends */
    uint32_t losses;      /* losses of any kind: says which operations `sent` has counted */
    bool uncertain;       /* a message has failed and may have arrived: no more arrows */
};

struct endpoint {
    struct trace_file *file; /* NULL: the log only */
    struct trace_events events;
    uint64_t limit, beyond;
    uint64_t own; /* the endpoint's own name, equal to `peer` of the pair at the other end; known once a peer is up */
    struct pair *pairs;
};

struct peer {
    struct pair *pair;
};

struct operation {
    uint64_t begin;
    struct pair *pair; /* the pair of a message with an arrow */
    uint64_t place;    /* the message's number among those sent */
    uint32_t losses;
};

static const struct ofp_hook_core *core;

static const struct ofp_param options[] = {
    {"file", OFP_PARAM_STRING, "",
     "Write a trace for viewers here; %p stands for the id of the process; empty: log only", 0, 0},
    {"limit", OFP_PARAM_INT, "1000000", "Events of an endpoint that are kept for the file", 1, OFP_COUNT_MAX},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* -------------------------------------------------------------------------------------------------------------- arrows */

/* FNV-1a. */
static uint64_t compute_trace_hash(uint64_t state, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < length; i++)
        state = (state ^ byte[i]) * UINT64_C(0x100000001b3);
    return state;
}

static struct pair *get_pair(struct ofp_hook_endpoint *hook, const struct ofp_peer *base)
{
    struct endpoint *endpoint = hook->private;
    struct peer *peer = core->peer_private(hook, base);
    uint64_t address;

    if (peer->pair)
        return peer->pair;
    address = compute_trace_hash(HASH_START, base->address, base->address_length);
    for (struct pair *pair = endpoint->pairs; pair && !peer->pair; pair = pair->next)
        if (pair->address == address)
            peer->pair = pair;
    if (peer->pair)
        return peer->pair;
    peer->pair = calloc(1, sizeof(*peer->pair));
    if (peer->pair) {
        peer->pair->address = address;
        peer->pair->next = endpoint->pairs;
        endpoint->pairs = peer->pair;
    }
    return peer->pair;
}

static uint64_t compute_flow(uint64_t sender, uint64_t receiver, const struct pair *pair, uint64_t place)
{
    const uint64_t parts[] = {sender, receiver, pair->connections, place};
    uint64_t result = compute_trace_hash(HASH_START, parts, sizeof(parts));

    if (!sender || !receiver)
        return 0;
    return result ? result : 1;
}

static void count_send(struct ofp_hook_endpoint *hook, const struct ofp_hook_operation *operation,
                       struct operation *seen)
{
    bool is_message = !ofp_operation_is(operation->code, OFP_RECEIVES | OFP_REMOTE);

    /* A transport that matches does not report arrivals. */
    if (!is_message || !operation->peer || hook->endpoint->info->offloads_matching)
        return;
    seen->pair = get_pair(hook, operation->peer);
    if (!seen->pair)
        return;
    seen->place = seen->pair->sent++;
    seen->losses = seen->pair->losses;
}

/* Undo the count of a send that the transport never got. No later operation was posted since. */
static void uncount_send(struct operation *seen)
{
    if (seen->pair && seen->losses == seen->pair->losses)
        seen->pair->sent--;
}

static uint64_t compute_send_flow(const struct endpoint *endpoint, struct operation *seen, int error)
{
    struct pair *pair = seen->pair;

    if (!pair || seen->losses != pair->losses || pair->uncertain)
        return 0;
    pair->uncertain = error != 0;
    return error ? 0 : compute_flow(endpoint->own, pair->peer, pair, seen->place);
}

static uint64_t compute_arrival_flow(struct ofp_hook_endpoint *hook, const struct ofp_peer *peer)
{
    const struct endpoint *endpoint = hook->private;
    struct pair *pair = peer ? get_pair(hook, peer) : NULL;

    return pair ? compute_flow(pair->peer, endpoint->own, pair, pair->arrived++) : 0;
}

/* Name both ends by address, or by identity where the two ends may know an endpoint by different addresses. */
static void store_pair_names(const struct ofp_hook_endpoint *hook, const struct ofp_peer *peer, struct pair *pair)
{
    const struct ofp_endpoint *base = hook->endpoint;
    struct endpoint *endpoint = hook->private;
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    if (base->ops->peer_identity) {
        const uint8_t *identity = base->ops->peer_identity(peer);

        pair->peer = identity ? compute_trace_hash(HASH_START, identity, OFP_IDENTITY_SIZE) : 0;
        endpoint->own = compute_trace_hash(HASH_START, base->identity, OFP_IDENTITY_SIZE);
        return;
    }
    pair->peer = pair->address;
    if (base->ops->name(hook->endpoint, address, &length) == 0)
        endpoint->own = compute_trace_hash(HASH_START, address, length);
}

/* -------------------------------------------------------------------------------------------------------------- events */

static void store_event(struct endpoint *endpoint, const struct trace_event *event)
{
    struct trace_events *events = &endpoint->events;
    size_t room = events->room ? events->room * 2 : FIRST_ROOM;
    struct trace_event *grown;

    if (!endpoint->file)
        return;
    if (events->count == events->room && events->count < endpoint->limit) {
        grown = realloc(events->all, room * sizeof(*grown));
        if (grown) {
            events->all = grown;
            events->room = room;
        }
    }
    if (events->count == events->room || events->count >= endpoint->limit)
        endpoint->beyond++;
    else
        events->all[events->count++] = *event;
}

static int trace_post(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                      struct ofp_hook_verdict *verdict)
{
    struct operation *seen = operation->private;

    (void)verdict;
    seen->begin = core->core->now();
    count_send(hook, operation, seen);
    return 0;
}

static void trace_refused(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation, int error)
{
    uncount_send(operation->private);
    core->core->log(OFP_LOG_DEBUG, "trace", "endpoint %u: operation %llu, a %s to %u, is refused: %s",
                    hook->endpoint->id, (unsigned long long)operation->number, ofp_operation_name(operation->code),
                    operation->index, ofp_strerror(error));
}

static void log_operation(const struct ofp_hook_endpoint *hook, const struct trace_event *event)
{
    const char *where = event->peer == OFP_PEER_ANY ? "any peer" : event->peer == OFP_PEER_UNKNOWN ? "its peer" : NULL;
    char peer[24];

    snprintf(peer, sizeof(peer), "peer %u", event->peer);
    core->core->log(
        OFP_LOG_DEBUG, "trace", "endpoint %u: operation %llu, %s, %s, tag %#llx, %llu bytes: %s after %llu ns",
        hook->endpoint->id, (unsigned long long)event->number, ofp_operation_name(event->code), where ? where : peer,
        (unsigned long long)event->tag, (unsigned long long)event->length,
        event->error ? ofp_strerror(event->error) : "done", (unsigned long long)(event->end - event->begin));
}

static void trace_completed(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                            const struct ofp_completion *completion, bool more)
{
    struct operation *seen = operation->private;
    bool receive = ofp_operation_is(operation->code, OFP_RECEIVES);
    bool taken = receive && completion->flags & OFP_COMPLETED_RECV && !completion->error;
    struct trace_event event = {
        .kind = TRACE_OPERATION,
        .begin = seen->begin,
        .end = core->core->now(),
        .number = operation->number,
        .code = operation->code,
        .peer = taken ? completion->source : operation->index,
        .tag = taken ? completion->tag : operation->tag,
        .length = receive ? completion->length : operation->length,
        .error = completion->error,
    };

    if (more)
        return;
    if (!operation->posted)
        uncount_send(seen);
    else
        event.flow = compute_send_flow(hook->private, seen, completion->error);
    store_event(hook->private, &event);
    log_operation(hook, &event);
}

static void trace_arrived(struct ofp_hook_endpoint *hook, const struct ofp_message *message, enum ofp_hook_arrival how)
{
    store_event(hook->private, &(struct trace_event){
                                   .kind = TRACE_ARRIVAL,
                                   .begin = core->core->now(),
                                   .code = (uint16_t)how,
                                   .peer = message->source,
                                   .tag = message->tag,
                                   .length = message->length,
                                   .flow = compute_arrival_flow(hook, message->peer),
                               });
    core->core->log(OFP_LOG_DEBUG, "trace", "endpoint %u: arrival from peer %u, tag %#llx, %llu bytes",
                    hook->endpoint->id, message->source, (unsigned long long)message->tag,
                    (unsigned long long)message->length);
}

static void trace_moved(struct ofp_hook_endpoint *hook, const struct ofp_receive *receive, enum ofp_moved how)
{
    store_event(hook->private, &(struct trace_event){
                                   .kind = TRACE_MOVE,
                                   .begin = core->core->now(),
                                   .code = (uint16_t)how,
                                   .peer = receive->message.source,
                                   .tag = receive->message.tag,
                                   .length = receive->length,
                               });
    core->core->log(OFP_LOG_DEBUG, "trace", "endpoint %u: payload from peer %u, tag %#llx, %llu bytes: %s",
                    hook->endpoint->id, receive->message.source, (unsigned long long)receive->message.tag,
                    (unsigned long long)receive->length, trace_method_describe(how));
}

static void trace_peer_changed(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, enum ofp_peer_state before,
                               int error)
{
    struct pair *pair = get_pair(hook, peer);

    if (pair && peer->state == OFP_PEER_UP)
        store_pair_names(hook, peer, pair);
    if (pair && peer->state == OFP_PEER_LOST) {
        pair->connections += before == OFP_PEER_UP;
        pair->losses++;
        pair->sent = pair->arrived = 0;
        pair->uncertain = false;
    }
    store_event(hook->private, &(struct trace_event){
                                   .kind = TRACE_PEER,
                                   .begin = core->core->now(),
                                   .code = peer->state,
                                   .peer = peer->index,
                               });
    core->core->log(OFP_LOG_DEBUG, "trace", "endpoint %u: peer %u is %s%s%s", hook->endpoint->id, peer->index,
                    trace_peer_state_describe(peer->state), error ? ": " : "", error ? ofp_strerror(error) : "");
}

/* ---------------------------------------------------------------------------------------------------- opening, closing */

/* Replace %p by the process id. */
static int format_file_name(const char *said, char *name, size_t size)
{
    size_t used = 0;

    for (; *said && used < size; said++) {
        if (said[0] == '%' && said[1] == 'p') {
            used += (size_t)snprintf(name + used, size - used, "%ld", (long)getpid());
            said++;
        } else {
            name[used++] = *said;
        }
    }
    if (used >= size)
        return -ENAMETOOLONG;
    name[used] = 0;
    return 0;
}

static int trace_open(struct ofp_hook_endpoint *hook, char *text, size_t text_size)
{
    struct endpoint *endpoint = hook->private;
    const char *said = core->option_string(hook, "file");
    char name[1024];

    endpoint->limit = (uint64_t)core->option_int(hook, "limit");
    if (!*said)
        return 0;
    if (format_file_name(said, name, sizeof(name)) != 0) {
        snprintf(text, text_size, "file=%.64s… is longer than %zu bytes", said, sizeof(name) - 1);
        return -ENAMETOOLONG;
    }
    endpoint->file = trace_file_open(name, text, text_size);
    return endpoint->file ? 0 : -EINVAL;
}

static void write_endpoint_events(const struct ofp_hook_endpoint *hook, struct endpoint *endpoint)
{
    const char *said = core->option_string(hook, "file");
    char title[96];
    int result;

    snprintf(title, sizeof(title), "endpoint %u (%s)", hook->endpoint->id, hook->endpoint->info->provider);
    result = trace_file_add(endpoint->file, title, &endpoint->events);
    if (result)
        core->core->log(OFP_LOG_WARNING, "trace", "file=%s cannot be written: %s", said, ofp_strerror(result));
    if (endpoint->beyond)
        core->core->log(OFP_LOG_WARNING, "trace",
                        "file=%s lacks the last %llu events of endpoint %u, which had more than limit=%llu", said,
                        (unsigned long long)endpoint->beyond, hook->endpoint->id, (unsigned long long)endpoint->limit);
}

static void trace_close(struct ofp_hook_endpoint *hook)
{
    struct endpoint *endpoint = hook->private;

    if (endpoint->file)
        write_endpoint_events(hook, endpoint);
    free(endpoint->events.all);
    while (endpoint->pairs) {
        struct pair *pair = endpoint->pairs;

        endpoint->pairs = pair->next;
        free(pair);
    }
}

static const struct ofp_hook trace = {
    .abi = OFP_HOOK_ABI,
    .size = sizeof(trace),
    .name = "trace",
    .description = "Tells the log of each operation, and writes a file that viewers of traces open",
    .options = options,
    .endpoint_size = sizeof(struct endpoint),
    .peer_size = sizeof(struct peer),
    .operation_size = sizeof(struct operation),
    .open = trace_open,
    .close = trace_close,
    .post = trace_post,
    .refused = trace_refused,
    .completed = trace_completed,
    .arrived = trace_arrived,
    .moved = trace_moved,
    .peer_changed = trace_peer_changed,
};

const struct ofp_hook *ofpi_hook_trace_get(const struct ofp_hook_core *services)
{
    core = services;
    core->core->hold_in_fork(&trace_files_lock);
    return &trace;
}
