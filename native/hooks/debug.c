/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hook `debug`: checks the contracts between core and transport while a program runs. A violation ends the process,
 * after a line in the log and on standard error that describes it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_tree.h"

/* Released copies of payload are overwritten with this byte. */
#define RELEASED_BYTE 0xdb

enum stage { UNSEEN, POSTED, REFUSED, ENDED };

struct operation {
    uint32_t stage;
    uint64_t flags, ignore;
};

struct endpoint {
    uint64_t under_way;
};

struct peer {
    bool seen; /* since its bytes were zeroed */
    uint8_t state;
};

static const struct ofp_hook_core *core;

static const char *const state_names[] = {"unused", "connecting", "up", "lost"};

/* --------------------------------------------------------------------------------------------------------- violations */

static _Noreturn void report_violation(const struct ofp_hook_endpoint *hook, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void report_violation(const struct ofp_hook_endpoint *hook, const char *format, ...)
{
    const char *provider = hook->endpoint->info->provider;
    char what[OFP_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    core->core->log(OFP_LOG_ERROR, provider, "hook debug: endpoint %u: %s", hook->endpoint->id, what);
    /* The log is read by the process itself, which ends now: write to standard error too. */
    fprintf(stderr, "ofipy: hook debug: endpoint %u of %s: %s\n", hook->endpoint->id, provider, what);
    abort();
}

static void check_lock(const struct ofp_hook_endpoint *hook, const char *where)
{
    if (!core->lock_is_held(hook))
        report_violation(hook, "%s without the domain's lock", where);
}

/* --------------------------------------------------------------------------------------------------------- operations */

static bool is_receive(const struct ofp_hook_operation *operation)
{
    return ofp_operation_is(operation->code, OFP_RECEIVES);
}

static int debug_post(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                      struct ofp_hook_verdict *verdict)
{
    struct endpoint *endpoint = hook->private;
    struct operation *seen = operation->private;

    (void)verdict;
    check_lock(hook, "post");
    seen->stage = POSTED;
    seen->flags = operation->op->flags;
    seen->ignore = operation->op->ignore;
    endpoint->under_way++;
    return 0;
}

static void end_operation(struct ofp_hook_endpoint *hook, const struct ofp_hook_operation *operation, enum stage stage)
{
    static const char *const stories[] = {"was never posted", "", "was refused before", "had ended before"};
    struct endpoint *endpoint = hook->private;
    struct operation *seen = operation->private;

    if (seen->stage != POSTED)
        report_violation(hook, "operation %llu of code %u ends, and it %s", (unsigned long long)operation->number,
                         operation->code, stories[seen->stage]);
    if (stage == POSTED)
        return;
    seen->stage = stage;
    endpoint->under_way--;
}

static void debug_refused(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation, int error)
{
    check_lock(hook, "a refusal");
    end_operation(hook, operation, REFUSED);
    if (error <= 0)
        report_violation(hook, "operation %llu of code %u was refused with %d, which is no error",
                         (unsigned long long)operation->number, operation->code, error);
}

/* The completion flag that each kind of operation ends with. */
static uint64_t get_completion_kind(uint16_t code)
{
    if (!ofp_operation_is(code, OFP_REMOTE))
        return ofp_operation_is(code, OFP_RECEIVES) ? OFP_COMPLETED_RECV | OFP_COMPLETED_MULTI_RECV
                                                    : OFP_COMPLETED_SEND;
    return ofp_operation_is(code, OFP_READS) ? OFP_COMPLETED_READ : OFP_COMPLETED_WRITE;
}

/* Check the completion of a receive with a message. */
static void check_message(struct ofp_hook_endpoint *hook, const struct ofp_hook_operation *operation,
                          const struct ofp_completion *completion)
{
    const struct operation *seen = operation->private;
    unsigned long long number = operation->number, length = completion->length, room = operation->length;
    uint64_t beyond = completion->tag ^ operation->tag;

    if (!(seen->flags & (OFP_PEEK | OFP_HOLD | OFP_DISCARD)) &&
        (length > room || completion->buffer_offset > room - length))
        report_violation(hook, "receive %llu has %llu bytes of room and ends with %llu at %llu", number, room, length,
                         (unsigned long long)completion->buffer_offset);
    if (operation->code == OFP_TRECV && completion->flags & OFP_COMPLETED_RECV && beyond & ~seen->ignore)
        report_violation(hook, "receive %llu of tag %#llx ends with a message of tag %#llx", number,
                         (unsigned long long)operation->tag, (unsigned long long)completion->tag);
    if (operation->index != OFP_PEER_ANY && completion->flags & OFP_COMPLETED_RECV &&
        completion->source != operation->index && completion->source != OFP_PEER_UNKNOWN)
        report_violation(hook, "receive %llu from peer %u ends with a message of peer %u", number, operation->index,
                         completion->source);
}

static void debug_completed(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                            const struct ofp_completion *completion, bool more)
{
    unsigned long long number = operation->number;

    check_lock(hook, "a completion");
    end_operation(hook, operation, more ? POSTED : ENDED);
    /* The completion of an internal operation has no such flag. */
    if (ofp_operation_row(operation->code)->completed && !(completion->flags & get_completion_kind(operation->code)))
        report_violation(hook, "operation %llu of code %u ends with flags %#llx, which are another kind's", number,
                         operation->code, (unsigned long long)completion->flags);
    if (completion->error < 0)
        report_violation(hook, "operation %llu of code %u ends with the negative error %d", number, operation->code,
                         completion->error);
    if (completion->error)
        return;
    if (is_receive(operation))
        check_message(hook, operation, completion);
    else if (completion->length != operation->length)
        report_violation(hook, "operation %llu of code %u is of %llu bytes and ends with %llu", number, operation->code,
                         (unsigned long long)operation->length, (unsigned long long)completion->length);
}

/* -------------------------------------------------------------------------------------------------------------- others */

static void debug_arrived(struct ofp_hook_endpoint *hook, const struct ofp_message *message, enum ofp_hook_arrival how)
{
    (void)how;
    check_lock(hook, "an arrival");
    if (!message->peer)
        return;
    if (message->source != message->peer->index)
        report_violation(hook, "a message of peer %u says that it is of peer %u", message->peer->index,
                         message->source);
    if (message->peer->state != OFP_PEER_UP)
        report_violation(hook, "a message of peer %u arrives while that is %s", message->peer->index,
                         state_names[message->peer->state]);
}

static void debug_peer_changed(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, enum ofp_peer_state before,
                               int error)
{
    struct peer *seen = core->peer_private(hook, peer);

    (void)error;
    check_lock(hook, "a change of a peer's state");
    if (seen->seen ? seen->state != before : before != OFP_PEER_UNUSED && before != OFP_PEER_LOST)
        report_violation(hook, "peer %u was %s, and changes from %s to %s", peer->index,
                         state_names[seen->seen ? seen->state : OFP_PEER_UNUSED], state_names[before],
                         state_names[peer->state]);
    seen->seen = true;
    seen->state = peer->state;
}

static void debug_written(struct ofp_hook_endpoint *hook, const struct ofp_receive *receive, uint64_t offset,
                          uint64_t length)
{
    check_lock(hook, "a write into a receive");
    if (offset > receive->length || length > receive->length - offset)
        report_violation(hook, "receive_write of %llu bytes at %llu of a receive of %llu", (unsigned long long)length,
                         (unsigned long long)offset, (unsigned long long)receive->length);
}

/* Overwrite the copy: an operation that still reads it sends these bytes. */
static void debug_released(struct ofp_hook_endpoint *hook, void *memory, size_t length)
{
    check_lock(hook, "the release of a copy");
    memset(memory, RELEASED_BYTE, length);
}

static void debug_close(struct ofp_hook_endpoint *hook)
{
    const struct endpoint *endpoint = hook->private;

    if (endpoint->under_way)
        report_violation(hook, "it closes, and %llu operations have not ended",
                         (unsigned long long)endpoint->under_way);
}

static const struct ofp_hook debug = {
    .abi = OFP_HOOK_ABI,
    .size = sizeof(debug),
    .name = "debug",
    .description = "Looks at the contracts between core and transport, and ends the process where one is broken",
    .endpoint_size = sizeof(struct endpoint),
    .peer_size = sizeof(struct peer),
    .operation_size = sizeof(struct operation),
    .close = debug_close,
    .post = debug_post,
    .refused = debug_refused,
    .completed = debug_completed,
    .arrived = debug_arrived,
    .peer_changed = debug_peer_changed,
    .written = debug_written,
    .released = debug_released,
};

const struct ofp_hook *ofpi_hook_debug_get(const struct ofp_hook_core *services)
{
    core = services;
    return &debug;
}
