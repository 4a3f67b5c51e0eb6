/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a request in a thread. Whatever can end a request (the core, another thread, a closed domain) is handled in
 * handle_core_answer().
 */
#include "request/request.h"

#include <errno.h>

/* The core refuses to report a result: `_refused`, in Python, raises the error of this code. */
static int report_core_error(struct request *request, int code)
{
    PyObject *answer = PyObject_CallMethod((PyObject *)request, "_refused", "i", code);

    Py_XDECREF(answer);
    return answer ? NOT_YET : RAISED;
}

/* Act on the result of one of the core's functions that read a completion, unless that is a row. */
static int handle_core_answer(struct request *request, int result)
{
    switch (result) {
    case 1:
        OFP_CHECK(request->kind == PREPARED || (request->handle && !request->has_result));
        OFP_CHECK(request->kind != MANY);
        if (request->kind == MESSAGE && request->completion.flags & OFP_COMPLETED_CLAIM && !request->completion.error)
            return request_claim(request);
        return request_complete(request);
    case 0:
    case -EINTR:
        return NOT_YET;
    case -ESTALE:
        /* GIL: another thread has read the completion, into the same request, and has got the GIL later than this one. */
        return request_complete(request);
    case -ECANCELED:
    case -OFP_EFORKED:
        request->is_result_lost = 1;
        return request_end(request, -result);
    default:
        return report_core_error(request, result);
    }
}

/* Check without releasing the GIL, so without waiting; `progress`: first make one round of progress, unless the domain is
   in use. */
static int poll_request(struct request *request, bool progress)
{
    struct request_row *row = NULL;
    struct ofp_completion *into = &request->completion;
    int result;

    if (request->rows.count || (request->kind != PREPARED && request->has_result))
        return FINISHED;
    if (request->kind == MANY) {
        row = request_row_reserve();
        if (!row)
            return RAISED;
        into = &row->completion;
    }
    result = progress ? core.ofp_request_take_at_once(request->handle, into)
                      : core.ofp_request_take_finished(request->handle, into);
    if (result == 1 && row)
        return request_row_append(request, row);
    PyMem_Free(row);
    return result ? handle_core_answer(request, result) : NOT_YET;
}

int request_poll(struct request *request) { return poll_request(request, false); }

/* The GIL is released during the call. */
static int wait_in_core(ofp_request_t handle, int64_t timeout, struct ofp_completion *into)
{
    int result;

    Py_BEGIN_ALLOW_THREADS result = core.ofp_request_take(handle, timeout, into);
    Py_END_ALLOW_THREADS return result;
}

int request_wait_once(struct request *request, int64_t timeout)
{
    struct request_row *row = NULL;
    ofp_request_t handle = request->handle;
    /* Receiving so few bytes takes less time than releasing and reacquiring the GIL. */
    int result = poll_request(request, request->buffer_length <= COPIED_WITH_GIL);

    if (result != NOT_YET)
        return result;
    if (request->kind == MANY && !(row = request_row_reserve()))
        return RAISED;
    result = wait_in_core(handle, timeout, row ? &row->completion : &request->completion);
    /* Only this thread has the row, also if another thread has read the last row and completed the request meanwhile. */
    if (result == 1 && row)
        return request_row_append(request, row);
    PyMem_Free(row);
    /* GIL: another thread may have completed the request during the release. */
    if (request->kind != PREPARED && request->has_result)
        return FINISHED;
    return handle_core_answer(request, result);
}

int request_interruptions_handle(void)
{
    PyObject *drained;

    if (PyErr_CheckSignals() != 0)
        return -1;
    if (!core.ofp_log_waiting())
        return 0;
    drained = PyObject_CallNoArgs(request_python.drain_log);
    Py_XDECREF(drained);
    return drained ? 0 : -1;
}

int request_wait(struct request *request, int64_t timeout)
{
    int64_t deadline = timeout < 0 ? 0 : get_time_ns() + timeout, left = timeout;

    for (;;) {
        int result = request_wait_once(request, left);

        if (result != NOT_YET)
            return result;
        /* Ctrl-C ends the wait here, and the operation continues. */
        if (request_interruptions_handle() != 0)
            return RAISED;
        /* The last check: it may have finished just before the time was over. */
        if (timeout >= 0 && (left = deadline - get_time_ns()) <= 0)
            return request_wait_once(request, 0);
    }
}

PyObject *request_outcome_get(struct request *request)
{
    PyObject *self = (PyObject *)request;

    if (!request->completion.error && ((PyObject *)Py_TYPE(self) == request_python.Request ||
                                       request->kind == PREPARED || self == request_python.COMPLETED)) {
        Py_INCREF(self);
        return self;
    }
    if (!request->completion.error && request->kind == VALUE) {
        Py_INCREF(request->fetched);
        return request->fetched;
    }
    if (!request->completion.error && request->fetched)
        return memory_result_get(request->fetched);
    return PyObject_CallMethod(self, "_result", NULL);
}

const char request_outcomes_collect_doc[] =
    "outcomes(requests, /)\n--\n\n"
    "What waiting for the first requests of a tuple returns, as long as they have finished, without an error and with a\n"
    "result that needs no Python. It never waits. The caller waits for the others one by one.";

PyObject *request_outcomes_collect(PyObject *module, PyObject *requests)
{
    PyObject *outcomes = PyList_New(0);
    Py_ssize_t count = PyTuple_Size(requests); /* -1, with an exception: no tuple */

    (void)module;
    if (!outcomes || count < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(requests, i); /* borrowed */
        struct request *request = (struct request *)item;
        int result = FINISHED;

        if (!item)
            goto failed;
        if (item != request_python.COMPLETED) {
            if ((PyObject *)Py_TYPE(item) != request_python.Request || request->kind != PLAIN || !request->orphans)
                break;
            result = request_poll(request);
        }
        if (result == RAISED)
            goto failed;
        if (result == NOT_YET || request->completion.error)
            break;
        if (PyList_Append(outcomes, item) != 0)
            goto failed;
    }
    return outcomes;
failed:
    Py_XDECREF(outcomes);
    return NULL;
}
