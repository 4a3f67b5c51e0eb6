/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of unknown size. The core holds one for its request, which claims it, with memory of its size, and accepts it once
 * the program has it. Until then whoever drops the request gives the message back.
 */
#include "requests.h"

#include <errno.h>

int request_claim(struct request *request)
{
    uint64_t length = request->completion.length;
    PyObject *payload;
    int result;

    /* Another thread is at it. */
    if (request->is_claimed)
        return NOT_YET;
    payload = length <= PY_SSIZE_T_MAX ? PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)length) : NULL;
    if (!payload) {
        PyErr_Clear();
        request->is_too_large = 1;
        core.ofp_request_discard(request->handle);
        return request_end(request, ENOMEM);
    }
    request->buffer.owner = payload;
    /* While the interpreter's lock is still held: no second thread claims it then. */
    request->is_claimed = 1;
    Py_BEGIN_ALLOW_THREADS result =
        core.ofp_request_claim(request->handle, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)PyByteArray_AsString(payload),
                               length, &request->completion);
    Py_END_ALLOW_THREADS
        /* Another thread has ended it meanwhile. */
        if (request->has_result) return FINISHED;
    if (result == 0)
        return NOT_YET;
    if (result == 1)
        return request_complete(request);
    core.ofp_request_abandon(request->handle, true);
    return request_end(request, -result);
}

const char request_message_return_doc[] =
    PyDoc_STR("Give back the message that it holds; True: it is over, as cancelled.");
PyObject *request_message_return(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct request *request = (struct request *)self;

    if (!request->handle || request->is_claimed || core.ofp_request_unclaim(request->handle) != 0)
        Py_RETURN_FALSE;
    request_end(request, ECANCELED);
    Py_RETURN_TRUE;
}

PyObject *request_is_delivered(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((struct request *)self)->is_delivered);
}

/* The program has what it received. An attribute, since Python runs no signal handler between setting it and returning. */
int request_delivered_set(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    struct request *request = (struct request *)self;
    ofp_request_t handle = request->handle;

    request->is_delivered = value == Py_True;
    if (!request->is_claimed || !request->has_result || !request->is_delivered)
        return 0;
    /* First: another thread may come here as soon as the interpreter's lock is let go of. */
    request->handle = 0;
    request->is_claimed = 0;
    if (core.ofp_request_accept(handle, true) == -ENOLCK) {
        Py_BEGIN_ALLOW_THREADS core.ofp_request_accept(handle, false);
        Py_END_ALLOW_THREADS
    }
    return 0;
}
