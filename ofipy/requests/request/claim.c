/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives of unknown size. The core sets a message aside for its request. The request claims the message, with a bytearray of
 * its size, and accepts it when the program has it. Until then a request that is deleted or cancelled returns the message.
 */
#include "request/request.h"

#include <errno.h>

int request_claim(struct request *request)
{
    struct ofp_completion *completion = &request->completion;
    ofp_request_t handle = request->handle;
    uint64_t length = completion->length, address;
    PyObject *payload;
    int result;

    /* Another thread is claiming it. */
    if (request->is_claimed)
        return NOT_YET;
    payload = length <= PY_SSIZE_T_MAX ? PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)length) : NULL;
    if (!payload) {
        PyErr_Clear();
        request->is_too_large = 1;
        core.ofp_request_discard(handle);
        return request_end(request, ENOMEM);
    }
    request->buffer.owner = payload;
    OFP_CHECK(request->kind == MESSAGE && !request->has_result);
    request->incarnation = (uint32_t)completion->buffer_offset;
    /* GIL: set before the release, so that no second thread claims the message too. */
    request->is_claimed = 1;
    address = (uint64_t)(uintptr_t)PyByteArray_AsString(payload);
    Py_BEGIN_ALLOW_THREADS result = core.ofp_request_claim(handle, OFP_REGION_PROCESS, address, length, completion);
    Py_END_ALLOW_THREADS
        /* GIL: another thread may have completed the request during the release. */
        if (request->has_result) return FINISHED;
    OFP_CHECK(request->is_claimed && request->handle == handle);
    if (result == 0)
        return NOT_YET;
    if (result == 1)
        return request_complete(request);
    core.ofp_request_abandon(request->handle, true);
    return request_end(request, -result);
}

const char request_message_return_doc[] =
    PyDoc_STR("Return the message that is set aside; True: the request has ended, as cancelled.");
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

/*
 * The program has what it received, so the core may free the message. It is an attribute, since Python runs no signal handler
 * between setting an attribute and returning from the method that sets it.
 */
int request_delivered_set(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    struct request *request = (struct request *)self;
    ofp_request_t handle = request->handle;

    request->is_delivered = value == Py_True;
    if (!request->is_claimed || !request->has_result || !request->is_delivered)
        return 0;
    OFP_CHECK(request->kind == MESSAGE && handle);
    /* GIL: cleared before the release, so that no second thread accepts the message too. */
    request->handle = 0;
    request->is_claimed = 0;
    if (core.ofp_request_accept(handle, true) == -ENOLCK) {
        Py_BEGIN_ALLOW_THREADS core.ofp_request_accept(handle, false);
        Py_END_ALLOW_THREADS
    }
    return 0;
}
