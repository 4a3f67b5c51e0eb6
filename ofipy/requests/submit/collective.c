/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives and agreements, which Python has described in full: a group, a call, and what keeps its memory. */
#include "submit/submit.h"

#include <errno.h>

static ofp_request_t start_collective(struct ofp_group *group, const struct ofp_collective *call, long long timeout)
{
    ofp_request_t handle;

    Py_BEGIN_ALLOW_THREADS handle = core.ofp_collective_start(group, call, 0, timeout);
    Py_END_ALLOW_THREADS return handle;
}

/* The request owns a handle that was just started, and what keeps its memory. Or it is freed, for an error. */
static PyObject *attach_handle(struct poster *poster, struct request *request, PyObject *endpoint, ofp_request_t handle,
                               PyObject *owner)
{
    struct ofp_operation op = {.peer = OFP_PEER_UNKNOWN};
    struct buffer_reference reference = {0};

    if (handle < 0) {
        Py_DECREF((PyObject *)request);
        return PyErr_Occurred() ? NULL : PyLong_FromLongLong(handle);
    }
    Py_INCREF(owner);
    reference.owner = owner;
    request_operation_attach(request, &poster->orphans, endpoint, handle, &op, &reference);
    request->kind = PLAIN;
    request->is_delivered = 1;
    return (PyObject *)request;
}

const char poster_collective_start_doc[] =
    "collective(endpoint, type, group, call, keep, nanoseconds or None to prepare it) -> Request, or the core's error";
PyObject *poster_collective_start(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *owner, *timeout, *result;
    unsigned long long group, call;
    struct request *request;
    ofp_request_t handle;

    if (!PyArg_ParseTuple(arguments, "OOKKOO", &endpoint, &type, &group, &call, &owner, &timeout))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    /* Created before the start: whatever exception follows it, an object owns the handle and the memory. */
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    if (timeout == Py_None)
        handle = core.ofp_collective_prepare((struct ofp_group *)(uintptr_t)group,
                                             (const struct ofp_collective *)(uintptr_t)call);
    else
        handle = start_collective((struct ofp_group *)(uintptr_t)group, (const struct ofp_collective *)(uintptr_t)call,
                                  PyLong_AsLongLong(timeout));
    result = attach_handle(poster, request, endpoint, handle, owner);
    if (result == (PyObject *)request && timeout == Py_None)
        request->kind = PREPARED;
    return result;
}

const char poster_agreement_start_doc[] =
    "agreement(endpoint, type, group, flags, value, result, keep) -> Request, or the core's error";
PyObject *poster_agreement_start(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *owner;
    unsigned long long group, flags, result;
    struct request *request;
    ofp_request_t handle;
    unsigned int value;

    if (!PyArg_ParseTuple(arguments, "OOKKIKO", &endpoint, &type, &group, &flags, &value, &result, &owner))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    handle = core.ofp_group_agree((struct ofp_group *)(uintptr_t)group, flags, value,
                                  (struct ofp_agreement_result *)(uintptr_t)result);
    return attach_handle(poster, request, endpoint, handle, owner);
}
