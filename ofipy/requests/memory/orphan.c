/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose request is gone. The core may use the memory of such an operation until the operation has ended, or until
 * the message that came into it, and was given back, is gone. So the memory moves into a list of the poster's, which is looked
 * through at later posts, and whole when the endpoint closes.
 */
#include "requests.h"

/* Of the list a post looks at, so that thousands of operations that run do not slow it down. */
#define LOOKED_AT_ONCE 4

static void append_orphan(struct poster *poster, struct orphan *orphan)
{
    orphan->next = NULL;
    if (!poster->orphans)
        poster->orphans_end = &poster->orphans;
    *poster->orphans_end = orphan;
    poster->orphans_end = &orphan->next;
    poster->orphan_count++;
}

static struct orphan *remove_orphan(struct poster *poster, struct orphan **place)
{
    struct orphan *orphan = *place;

    *place = orphan->next;
    if (!orphan->next)
        poster->orphans_end = place;
    poster->orphan_count--;
    return orphan;
}

static void free_orphan(struct orphan *orphan)
{
    buffer_reference_release(&orphan->buffer);
    PyMem_Free(orphan);
}

/* Whether the core is done with it. */
static bool poll_orphan(const struct orphan *orphan)
{
    int state = core.ofp_request_finished(orphan->handle);

    /* One that has finished is not released yet: it was left by a thread that is not the domain's. */
    return state < 0 || (state > 0 && core.ofp_request_abandon(orphan->handle, orphan->cancel) == 0);
}

/* Without memory for that the buffer stays for good, which is safe. */
static void add_orphan(struct poster *keeper, struct request *request, bool cancel)
{
    struct orphan *orphan = PyMem_Malloc(sizeof(*orphan));

    if (orphan) {
        *orphan = (struct orphan){.handle = request->handle, .buffer = request->buffer, .cancel = cancel};
        append_orphan(keeper, orphan);
    }
    request->buffer = (struct buffer_reference){0};
}

void request_operation_abandon(struct poster *poster, struct request *request)
{
    struct poster *keeper = poster->successor ? (struct poster *)poster->successor : poster;
    bool receives = request->op == OFP_RECV || request->op == OFP_TRECV;
    bool cancel = request->kind == MESSAGE || (receives && !request->is_delivered);

    if (core.ofp_request_abandon(request->handle, cancel) != 0)
        add_orphan(keeper, request, cancel);
    request->handle = 0;
    request->is_claimed = 0;
    buffer_reference_release(&request->buffer);
}

void orphans_sweep(struct poster *poster, bool all)
{
    uint64_t looks = all || poster->orphan_count < LOOKED_AT_ONCE ? poster->orphan_count : LOOKED_AT_ONCE;
    struct orphan *ended = NULL, *orphan;

    for (; looks && poster->orphans; looks--) {
        orphan = remove_orphan(poster, &poster->orphans);
        if (poll_orphan(orphan)) {
            orphan->next = ended;
            ended = orphan;
        } else {
            append_orphan(poster, orphan);
        }
    }
    /* Freeing runs code of the program's, which may post: the list is whole by now. */
    while ((orphan = ended)) {
        ended = orphan->next;
        free_orphan(orphan);
    }
}

void orphans_move(struct poster *poster, struct poster *successor)
{
    while (poster->orphans)
        append_orphan(successor, remove_orphan(poster, &poster->orphans));
}

void orphans_free(struct poster *poster)
{
    orphans_sweep(poster, true);
    while (poster->orphans) {
        struct orphan *orphan = remove_orphan(poster, &poster->orphans);

        /* What the core may still use stays for good; the endpoint is gone, so that there is no such thing. */
        if (core.ofp_request_abandon(orphan->handle, true) == 0)
            free_orphan(orphan);
        else
            PyMem_Free(orphan);
    }
}
