/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose request is gone. The memory of one that runs on belongs to the core until it has ended, so it moves into
 * a list of the poster's, which is looked through at later posts, and whole when the endpoint closes.
 */
#include "requests.h"

/* Of the list a post looks at, so that thousands of operations that run do not slow it down. */
#define LOOKED_AT_ONCE 4

void hold_release(struct hold *hold)
{
    struct hold released = *hold;

    /* What runs in the object's end finds it gone. */
    *hold = (struct hold){0};
    if (released.view.obj)
        PyBuffer_Release(&released.view);
    Py_XDECREF(released.keep);
}

static void append(struct poster *poster, struct orphan *orphan)
{
    orphan->next = NULL;
    if (!poster->orphans)
        poster->orphans_end = &poster->orphans;
    *poster->orphans_end = orphan;
    poster->orphans_end = &orphan->next;
    poster->orphan_count++;
}

static struct orphan *remove_at(struct poster *poster, struct orphan **place)
{
    struct orphan *orphan = *place;

    *place = orphan->next;
    if (!orphan->next)
        poster->orphans_end = place;
    poster->orphan_count--;
    return orphan;
}

static void orphan_free(struct orphan *orphan)
{
    hold_release(&orphan->hold);
    PyMem_Free(orphan);
}

/* Whether the core is done with it. A message that has arrived stays, for a receive. */
static bool has_ended(struct orphan *orphan)
{
    int state;

    if (!orphan->handle)
        return false;
    state = core.ofp_request_finished(orphan->handle);
    if (state == 0)
        return false;
    if (state > 0 && orphan->is_message) {
        state = core.ofp_request_take_finished(orphan->handle, &orphan->completion);
        if (state == 1 && !orphan->completion.error) {
            orphan->handle = 0;
            return false;
        }
        return state != 0;
    }
    /* Not released yet: it was left by a thread that is not the domain's. */
    return state < 0 || core.ofp_request_abandon(orphan->handle, orphan->cancel) == 0;
}

static bool leave_to(struct poster *keeper, struct request *request, bool is_message, bool cancel)
{
    struct orphan *orphan = PyMem_Malloc(sizeof(*orphan));

    if (!orphan)
        return false;
    *orphan = (struct orphan){.handle = request->handle,
                              .hold = request->hold,
                              .cancel = cancel,
                              .is_message = is_message,
                              .completion = request->completion,
                              .number = request->number,
                              .op = request->op};
    append(keeper, orphan);
    return true;
}

void orphan_leave(struct poster *poster, struct request *request)
{
    struct poster *keeper = poster->heir ? (struct poster *)poster->heir : poster;
    /* It goes to the next receive. While it is on its way the use of the slot goes on, and the queue tells of its end. */
    bool is_message = request->kind == MESSAGE && request->claimed && keeper->pointer;
    bool receives = request->op == OFP_RECV || request->op == OFP_TRECV;
    bool cancel = request->kind == MESSAGE || (receives && !request->kept);

    if (is_message && request->handle)
        core.ofp_request_notify(request->handle, false);
    if (is_message || core.ofp_request_abandon(request->handle, cancel) != 0) {
        /* Without memory for that the buffer stays for good, which is safe. */
        leave_to(keeper, request, is_message, cancel);
        request->hold = (struct hold){0};
    }
    request->handle = 0;
    request->claimed = 0;
    hold_release(&request->hold);
}

void orphans_sweep(struct poster *poster, bool all)
{
    uint64_t looks = all || poster->orphan_count < LOOKED_AT_ONCE ? poster->orphan_count : LOOKED_AT_ONCE;
    struct orphan *ended = NULL, *orphan;

    for (; looks && poster->orphans; looks--) {
        orphan = remove_at(poster, &poster->orphans);
        if (has_ended(orphan)) {
            orphan->next = ended;
            ended = orphan;
        } else {
            append(poster, orphan);
        }
    }
    /* Freeing runs code of the program's, which may post: the list is whole by now. */
    while ((orphan = ended)) {
        ended = orphan->next;
        orphan_free(orphan);
    }
}

static bool fits(const struct orphan *orphan, const struct request *receive)
{
    const struct ofp_completion *message = &orphan->completion;

    return orphan->is_message && orphan->op == receive->op &&
           (receive->peer == OFP_PEER_ANY || receive->peer == message->source) &&
           (receive->op == OFP_RECV || !((message->tag ^ receive->tag) & ~receive->ignore));
}

bool orphans_find_message(struct poster *poster, struct request *request)
{
    struct orphan *orphan, **oldest = NULL;

    orphans_sweep(poster, true);
    for (struct orphan **place = &poster->orphans; *place; place = &(*place)->next)
        if (fits(*place, request) && (!oldest || (*place)->number < (*oldest)->number))
            oldest = place;
    if (!oldest)
        return false;
    /* One that was posted is taken back first; it stays while the message is on its way, since a thread may sleep on it. */
    if (request->handle && ((*oldest)->handle || core.ofp_request_cancel(request->handle) != 0))
        return false;
    if (request->handle)
        core.ofp_request_abandon(request->handle, false);
    orphan = remove_at(poster, oldest);
    request->handle = orphan->handle;
    request->completion = orphan->completion;
    request->hold = orphan->hold;
    request->number = orphan->number;
    request->claimed = 1;
    PyMem_Free(orphan);
    return true;
}

void orphans_inherit(struct poster *poster, struct poster *heir)
{
    while (poster->orphans)
        append(heir, remove_at(poster, &poster->orphans));
}

void orphans_free(struct poster *poster)
{
    orphans_sweep(poster, true);
    while (poster->orphans) {
        struct orphan *orphan = remove_at(poster, &poster->orphans);

        /* What the core may still use stays for good; the endpoint is gone, so that there is no such thing. */
        if (!orphan->handle || core.ofp_request_abandon(orphan->handle, true) == 0)
            orphan_free(orphan);
        else
            PyMem_Free(orphan);
    }
}
