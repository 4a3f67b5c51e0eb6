/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose request is gone.
 *
 * The core may use the memory of such an operation until the operation has ended. If it is a receive of unknown size, and
 * the message in that memory was returned to the core, the core may use the memory until that message is gone. So the buffer
 * reference moves to a list of the poster's. Later posts check a few entries, and closing the endpoint checks all.
 */
#include "memory/memory.h"

/* How many orphans one post checks, so that thousands of running operations do not slow posts down. */
#define ORPHANS_PER_POST 4

static void append_orphan(struct orphan_owner *orphans, struct orphan *orphan)
{
    OFP_CHECK(orphan->handle > 0);
    orphan->next = NULL;
    if (!orphans->first)
        orphans->end = &orphans->first;
    *orphans->end = orphan;
    orphans->end = &orphan->next;
    orphans->count++;
}

static struct orphan *pop_orphan(struct orphan_owner *orphans)
{
    struct orphan *orphan = orphans->first;

    OFP_CHECK(orphans->count > 0);
    orphans->first = orphan->next;
    orphans->count--;
    return orphan;
}

static void free_orphan(struct orphan *orphan)
{
    buffer_reference_release(&orphan->buffer);
    PyMem_Free(orphan);
}

/* Whether the core no longer uses the memory. */
static bool poll_orphan(const struct orphan *orphan)
{
    int state = core.ofp_request_finished(orphan->handle);

    /* A positive state: it has finished, but its slot in the core is still used, and has to be released here. */
    return state < 0 || (state > 0 && core.ofp_request_abandon(orphan->handle, orphan->cancel) == 0);
}

void orphan_owner_add(struct orphan_owner *orphans, ofp_request_t handle, bool cancel, struct buffer_reference *buffer)
{
    struct orphan_owner *target = orphans->successor ? (struct orphan_owner *)orphans->successor : orphans;
    struct orphan *orphan;

    if (core.ofp_request_abandon(handle, cancel) != 0) {
        orphan = PyMem_Malloc(sizeof(*orphan));
        if (orphan) {
            *orphan = (struct orphan){.handle = handle, .buffer = *buffer, .cancel = cancel};
            append_orphan(target, orphan);
        }
        /* Without memory for an entry the reference leaks, which is safe: the core may still write to the buffer. */
        *buffer = (struct buffer_reference){0};
    }
    buffer_reference_release(buffer);
}

void orphan_owner_reclaim(struct orphan_owner *orphans, bool all)
{
    uint64_t left = all || orphans->count < ORPHANS_PER_POST ? orphans->count : ORPHANS_PER_POST;
    struct orphan *ended = NULL, *orphan;

    for (; left && orphans->first; left--) {
        orphan = pop_orphan(orphans);
        if (poll_orphan(orphan)) {
            orphan->next = ended;
            ended = orphan;
        } else {
            append_orphan(orphans, orphan);
        }
    }
    /* Only now: releasing memory runs code of the program, which may post and so change the list. */
    while ((orphan = ended)) {
        ended = orphan->next;
        free_orphan(orphan);
    }
}

/* The endpoint is gone, and with it all uses of the memory. */
static void free_all_orphans(struct orphan_owner *orphans)
{
    orphan_owner_reclaim(orphans, true);
    while (orphans->first) {
        struct orphan *orphan = pop_orphan(orphans);

        /* If the core still used the memory in spite of that, the reference would leak, which is safe. */
        if (core.ofp_request_abandon(orphan->handle, true) == 0)
            free_orphan(orphan);
        else
            PyMem_Free(orphan);
    }
    OFP_CHECK(orphans->count == 0);
}

void orphan_owner_close(struct orphan_owner *orphans, struct orphan_owner *successor)
{
    if (!successor) {
        free_all_orphans(orphans);
        return;
    }
    OFP_CHECK(successor != orphans);
    replace_object(&orphans->successor, (PyObject *)successor);
    while (orphans->first)
        append_orphan(successor, pop_orphan(orphans));
}
