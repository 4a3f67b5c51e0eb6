/* SPDX-License-Identifier: BSD-3-Clause */
#include "hook/hooked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "completion/complete.h"
#include "hook/hooks_services.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "object/peer.h"
#include "ofipy/ofp.h"
#include "operation/post.h"
#include "operation/resolve.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "peer/pending.h"
#include "progress/progress.h"

#define CHUNK_OPERATIONS 64

struct ofpi_hooked_chunk {
    struct ofpi_hooked_chunk *next;
    _Alignas(16) char operations[];
};

/* Read without a lock, by test suites that check whether their hooks were active. */
static _Atomic uint64_t operations;

uint64_t ofp_hooks_operations(void) { return ofp_load_relaxed(&operations); }

/* --------------------------------------------------------------------------------------------------------- operations */

static size_t compute_operation_size(const struct ofpi_hooks *hooks)
{
    return sizeof(struct ofpi_hooked) + hooks->list->operation_size;
}

static bool grow_operation_pool(struct ofpi_hooks *hooks)
{
    size_t size = compute_operation_size(hooks);
    struct ofpi_hooked_chunk *chunk = aligned_alloc(16, sizeof(*chunk) + CHUNK_OPERATIONS * size);

    if (!chunk)
        return false;
    chunk->next = hooks->chunks;
    hooks->chunks = chunk;
    for (size_t i = 0; i < CHUNK_OPERATIONS; i++)
        ofp_list_append(&hooks->free, &((struct ofpi_hooked *)(chunk->operations + i * size))->node);
    return true;
}

static void complete_hooked(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                            struct ofp_completion *completion);

static struct ofpi_hooked *allocate_hooked(struct ofpi_hooks *hooks, const struct ofp_transfer *transfer,
                                           struct ofpi_peer *peer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_hooked *hooked;

    if (ofp_list_empty(&hooks->free) && !grow_operation_pool(hooks))
        return NULL;
    hooked = OFP_CONTAINER_OF(ofp_list_pop(&hooks->free), struct ofpi_hooked, node);
    memset(hooked, 0, compute_operation_size(hooks));
    hooked->delayed.owner.finish = complete_hooked;
    hooked->hooks = hooks;
    hooked->live = true;
    hooked->operation = (struct ofp_hook_operation){
        .op = op,
        .number = atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed) + 1,
        .length = transfer->length,
        .tag = op->tag,
        .peer = peer ? &peer->base : NULL,
        .index = op->peer,
        .code = op->op,
    };
    return hooked;
}

static void free_hooked(struct ofpi_hooked *hooked)
{
    OFPI_CHECK(hooked->live);
    hooked->live = false;
    ofp_list_append(&hooked->hooks->free, &hooked->node);
}

/* Point the operation's `private` to the bytes of one hook. */
static struct ofp_hook_operation *set_hook_private(struct ofpi_hooked *hooked, uint32_t number)
{
    hooked->operation.private = hooked->private + hooked->hooks->list->uses[number].at_operation;
    return &hooked->operation;
}

/* ---------------------------------------------------------------------------------------------------------------- end */

static void complete_hooked(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                            struct ofp_completion *completion)
{
    struct ofpi_hooked *hooked = (struct ofpi_hooked *)owner;
    struct ofpi_hooks *hooks = hooked->hooks;
    bool more = op_flags & OFP_MULTI_RECV && !(completion->flags & OFP_COMPLETED_MULTI_RECV);
    /* A copy: the object is freed before the completion is passed on. */
    struct ofpi_owner before = *owner;

    for (uint32_t i = hooked->asked; i-- > 0;)
        if (hooks->each[i].hook->completed)
            hooks->each[i].hook->completed(&hooks->each[i], set_hook_private(hooked, i), completion, more);
    if (!more)
        free_hooked(hooked);
    ofpi_owner_deliver(&before, endpoint, op_flags, completion);
}

static void report_refusal(struct ofpi_hooked *hooked, int error)
{
    struct ofpi_hooks *hooks = hooked->hooks;

    for (uint32_t i = hooked->asked; i-- > 0;)
        if (hooks->each[i].hook->refused)
            hooks->each[i].hook->refused(&hooks->each[i], set_hook_private(hooked, i), -error);
    free_hooked(hooked);
}

/* --------------------------------------------------------------------------------------------------------------- post */

/* The combined result of all hooks; `why` names the hook that fails the operation. */
struct verdict {
    int error; /* negative; 0: post the operation */
    uint64_t not_before;
    char why[OFP_TEXT_MAX];
};

static int call_post_hook(struct ofpi_hooked *hooked, uint32_t number, struct verdict *verdict)
{
    struct ofp_hook_endpoint *each = &hooked->hooks->each[number];
    struct ofp_hook_verdict own = {0};
    int result = each->hook->post ? each->hook->post(each, set_hook_private(hooked, number), &own) : 0;

    if (result == -EAGAIN) {
        if (own.retry_at > verdict->not_before)
            verdict->not_before = own.retry_at;
        return 0;
    }
    if (result)
        snprintf(verdict->why, sizeof(verdict->why), "hook %s: %.400s", each->hook->name,
                 own.text[0] ? own.text : "it failed the operation");
    return result;
}

/*
 * Call the hooks, beginning with the one nearest to the application. The first that fails the operation is the last
 * that is called.
 */
static void call_post_hooks(struct ofpi_hooked *hooked, struct verdict *verdict)
{
    struct ofpi_hooks *hooks = hooked->hooks;

    OFPI_CHECK(hooked->live && !hooked->asked && !hooks->in_post);
    /* A hook's peer_lose within `post` takes effect after the post. */
    hooks->in_post = true;
    while (!verdict->error && hooked->asked < hooks->list->count)
        verdict->error = call_post_hook(hooked, hooked->asked++, verdict);
    hooks->in_post = false;
    /* The caller's record is valid during the post only. */
    hooked->operation.op = NULL;
    hooked->operation.posted = !verdict->error;
}

/* Disconnect the peer of a hook's peer_lose. The operation itself may have ended. */
static void disconnect_lost_peer(struct ofpi_hooks *hooks)
{
    struct ofpi_peer *peer = hooks->losing;

    hooks->losing = NULL;
    if (peer->base.state == OFP_PEER_UP || peer->base.state == OFP_PEER_CONNECTING)
        ofpi_peer_lost(&peer->base, OFP_EPEERLOST, false, hooks->why);
}

/*
 * The peer that the operation names; a target is created if needed. NULL without an error: any source, or a source
 * without a peer object.
 */
static struct ofpi_peer *find_operation_peer(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, int *error)
{
    *error = 0;
    if (!endpoint->av)
        return endpoint->peer_capacity ? endpoint->peers[0] : NULL;
    return ofpi_operation_is_receive(op) ? ofpi_peer_find_at(endpoint, op->peer)
                                         : ofpi_peer_get(endpoint, op->peer, error);
}

/* Call the hooks for an operation that passed all checks, and post it if they allow. */
static int post_hooked(struct ofpi_hooks *hooks, struct ofp_operation *op, const struct ofp_transfer *transfer,
                       struct ofpi_peer *peer)
{
    struct ofpi_hooked *hooked = allocate_hooked(hooks, transfer, peer);
    struct verdict verdict = {0};
    int result;

    if (!hooked)
        return -ENOMEM;
    call_post_hooks(hooked, &verdict);
    /* From here on complete_hooked() gets every completion and passes it to the hooks that were called. */
    ofpi_owner_enter(&hooked->delayed.owner, op);
    if (verdict.error) {
        ofpi_transfer_end(hooks->endpoint, transfer, -verdict.error, ofpi_reason_store(verdict.why));
        return 0;
    }
    /* Receives are not delayed: only the sender would notice. */
    if (verdict.not_before && !ofpi_operation_is_receive(op)) {
        hooked->delayed.not_before = verdict.not_before;
        op->flags |= OFPI_DELAYED;
    }
    result = ofpi_endpoint_start(hooks->endpoint, op);
    if (result)
        report_refusal(hooked, result);
    return result;
}

int ofpi_hooks_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *operation)
{
    struct ofpi_hooks *hooks = endpoint->hooks;
    struct ofp_operation op = *operation;
    struct ofpi_resolved resolved;
    struct ofpi_peer *peer;
    bool receive = ofpi_operation_is_receive(&op);
    int result;

    /* A claim or discard is the second half of a receive. The hooks were called for the first half. */
    if (receive && (op.flags & (OFP_PEEK | OFP_HOLD | OFP_CLAIM)) == OFP_CLAIM)
        return ofpi_endpoint_start(endpoint, &op);
    if (!endpoint->av)
        op.peer = receive ? OFP_PEER_ANY : OFP_PEER_UNKNOWN;
    /* Call hooks only for operations that pass all checks. Of a collective they observe the messages. */
    result = ofpi_operation_resolve(endpoint, &op, &resolved);
    if (result)
        return result == OFPI_IS_OF_GROUP ? ofpi_endpoint_start(endpoint, operation) : result;
    /* After -EAGAIN the caller posts the operation again. The hooks must be called for it once, so check first. */
    if (!receive && ofpi_endpoint_is_full(endpoint))
        return -EAGAIN;
    peer = find_operation_peer(endpoint, &op, &result);
    if (!result)
        result = post_hooked(hooks, &op, &resolved.transfer, peer);
    if (hooks->losing)
        disconnect_lost_peer(hooks);
    return result;
}

/* ------------------------------------------------------------------------------------------------------ other events */

void ofpi_hooks_peer_changed(struct ofpi_peer *peer, enum ofp_peer_state before, int error)
{
    struct ofpi_hooks *hooks = ((struct ofpi_endpoint *)peer->base.endpoint)->hooks;

    for (uint32_t i = 0; i < hooks->open; i++)
        if (hooks->each[i].hook->peer_changed)
            hooks->each[i].hook->peer_changed(&hooks->each[i], &peer->base, before, error);
}

void ofpi_hooks_released(struct ofpi_endpoint *endpoint, void *memory, size_t length)
{
    struct ofpi_hooks *hooks = endpoint->hooks;

    for (uint32_t i = 0; i < hooks->open; i++)
        if (hooks->each[i].hook->released)
            hooks->each[i].hook->released(&hooks->each[i], memory, length);
}

/* -------------------------------------------------------------------------------------------------- opening and closing */

static struct ofpi_hooks *create_hooks(struct ofpi_endpoint *endpoint, const struct ofpi_hook_list *list)
{
    struct ofpi_hooks *hooks = calloc(1, sizeof(*hooks) + list->count * sizeof(hooks->each[0]));

    if (!hooks)
        return NULL;
    /* At least one byte: calloc of size 0 may return NULL, which would look like an error. */
    hooks->memory = calloc(1, list->endpoint_size + 1);
    if (!hooks->memory) {
        free(hooks);
        return NULL;
    }
    hooks->endpoint = endpoint;
    hooks->list = list;
    ofp_list_init(&hooks->free);
    for (uint32_t i = 0; i < list->count; i++)
        hooks->each[i] = (struct ofp_hook_endpoint){
            .hook = list->uses[i].hook,
            .endpoint = &endpoint->base,
            .number = i,
            .private = (char *)hooks->memory + list->uses[i].at_endpoint,
        };
    return hooks;
}

int ofpi_hooks_open(struct ofpi_endpoint *endpoint, char *text, size_t text_size)
{
    const struct ofpi_hook_list *list = endpoint->domain->hooks;
    struct ofpi_hooks *hooks;
    int result = 0;

    if (!list)
        return 0;
    endpoint->hooks = hooks = create_hooks(endpoint, list);
    if (!hooks)
        return -ENOMEM;
    ofpi_hooks_services_bind(hooks);
    for (; !result && hooks->open < list->count; hooks->open += !result) {
        struct ofp_hook_endpoint *each = &hooks->each[hooks->open];
        char why[OFP_TEXT_MAX] = "";

        result = each->hook->open ? each->hook->open(each, why, sizeof(why)) : 0;
        if (result)
            snprintf(text, text_size, "hook %s: %s", each->hook->name, why[0] ? why : ofp_strerror(result));
    }
    return result;
}

void ofpi_hooks_close(struct ofpi_endpoint *endpoint)
{
    struct ofpi_hooks *hooks = endpoint->hooks;

    if (!hooks)
        return;
    while (hooks->open) {
        struct ofp_hook_endpoint *last = &hooks->each[--hooks->open];

        if (last->hook->close)
            last->hook->close(last);
    }
    while (hooks->chunks) {
        struct ofpi_hooked_chunk *chunk = hooks->chunks;

        hooks->chunks = chunk->next;
        free(chunk);
    }
    endpoint->hooks = NULL;
    free(hooks->memory);
    free(hooks);
}

int64_t ofp_endpoint_hook_report(struct ofp_endpoint *handle, const char *name, char *json, size_t size)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int64_t result = ofpi_endpoint_enter(endpoint);
    const struct ofpi_hooks *hooks;

    if (result)
        return result;
    hooks = endpoint->behind->hooks;
    result = -ENOENT;
    for (uint32_t i = 0; result == -ENOENT && hooks && i < hooks->open; i++) {
        struct ofp_hook_endpoint each = hooks->each[i];

        if (strcmp(each.hook->name, name) == 0)
            result = each.hook->report ? each.hook->report(&each, json, size) : -EOPNOTSUPP;
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}
