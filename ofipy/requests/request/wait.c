/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. What can end one (the core, another thread, a closed domain) is met in request_settle(); what a signal handler may
 * interrupt is written so that the request says the same afterwards.
 */
#include "memory/memory.h"
#include "requests.h"

#include <errno.h>

/* The core refuses to say; `_refused` raises why. */
static int raise_core_error(struct request *request, int code)
{
    PyObject *answer = PyObject_CallMethod((PyObject *)request, "_refused", "i", code);

    Py_XDECREF(answer);
    return answer ? NOT_YET : RAISED;
}

/* What the core answered to a take. */
static int handle_core_answer(struct request *request, int result, const struct ofp_completion *row)
{
    switch (result) {
    case 1:
        if (request->kind == MANY)
            return append_row(request, row);
        if (request->kind == MESSAGE && request->completion.flags & OFP_COMPLETED_CLAIM && !request->completion.error)
            return request_claim(request);
        return request_complete(request);
    case 0:
    case -EINTR:
        return NOT_YET;
    case -ESTALE:
        /* Another thread took it, into the same place. */
        return request_complete(request);
    case -ECANCELED:
    case -OFP_EFORKED:
        request->is_result_lost = 1;
        return request_end(request, -result);
    default:
        return raise_core_error(request, result);
    }
}

/* With the interpreter's lock held, so nothing that waits; `progress`: after one round of it. */
static int poll_request(struct request *request, bool progress)
{
    struct ofp_completion row, *into = request->kind == MANY ? &row : &request->completion;
    int result;

    if (request->kind == MANY && request->rows && PyList_Size(request->rows) > 0)
        return FINISHED;
    if (request->kind != PREPARED && request->has_result)
        return FINISHED;
    result = progress ? core.ofp_request_take_at_once(request->handle, into)
                      : core.ofp_request_take_finished(request->handle, into);
    return result ? handle_core_answer(request, result, &row) : NOT_YET;
}

int request_poll(struct request *request) { return poll_request(request, false); }

int request_wait_once(struct request *request, int64_t timeout)
{
    struct ofp_completion row, *into = request->kind == MANY ? &row : &request->completion;
    ofp_request_t handle = request->handle;
    /* What little has arrived is had sooner than the interpreter's lock is let go of and taken again. */
    int result = poll_request(request, request->buffer_length <= COPIED_AT_ONCE);

    if (result != NOT_YET)
        return result;
    /* Another thread may settle it meanwhile: `over` tells. */
    Py_BEGIN_ALLOW_THREADS result = core.ofp_request_take(handle, timeout, into);
    Py_END_ALLOW_THREADS if (request->kind != PREPARED && request->has_result) return FINISHED;
    return handle_core_answer(request, result, &row);
}

PyObject *request_outcome_get(struct request *request)
{
    PyObject *self = (PyObject *)request;

    if (!request->completion.error &&
        ((PyObject *)Py_TYPE(self) == hooks.Request || request->kind == PREPARED || self == hooks.COMPLETED)) {
        Py_INCREF(self);
        return self;
    }
    if (!request->completion.error && request->fetched)
        return memory_result_get(request->fetched);
    return PyObject_CallMethod(self, "_result", NULL);
}
