/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose request is gone. The core may use the memory of such an operation until the operation has ended, or until
 * the message that came into it, and was given back, is gone. So the memory moves into a list of the poster's, which is looked
 * through at later posts, and whole when the endpoint closes.
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

/* Whether the core is done with it. */
static bool has_ended(const struct orphan *orphan)
{
    int state = core.ofp_request_finished(orphan->handle);

    /* One that has finished is not released yet: it was left by a thread that is not the domain's. */
    return state < 0 || (state > 0 && core.ofp_request_abandon(orphan->handle, orphan->cancel) == 0);
}

/* Without memory for that the buffer stays for good, which is safe. */
static void leave_to(struct poster *keeper, struct request *request, bool cancel)
{
    struct orphan *orphan = PyMem_Malloc(sizeof(*orphan));

    if (orphan) {
        *orphan = (struct orphan){.handle = request->handle, .hold = request->hold, .cancel = cancel};
        append(keeper, orphan);
    }
    request->hold = (struct hold){0};
}

void orphan_leave(struct poster *poster, struct request *request)
{
    struct poster *keeper = poster->heir ? (struct poster *)poster->heir : poster;
    bool receives = request->op == OFP_RECV || request->op == OFP_TRECV;
    bool cancel = request->kind == MESSAGE || (receives && !request->kept);

    if (core.ofp_request_abandon(request->handle, cancel) != 0)
        leave_to(keeper, request, cancel);
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
        if (core.ofp_request_abandon(orphan->handle, true) == 0)
            orphan_free(orphan);
        else
            PyMem_Free(orphan);
    }
}
