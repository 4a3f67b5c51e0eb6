/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting what Python has described in full. */
#include "requests.h"

#include <errno.h>

/* ------------------------------------------------------------------------------------------------------ the general way */

/* A record as Python makes it. */
static bool copy_record(PyObject *buffer, struct ofp_operation *op)
{
    Py_buffer view;
    bool fits;

    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) != 0)
        return false;
    fits = view.len == (Py_ssize_t)sizeof(*op);
    if (fits)
        memcpy(op, view.buf, sizeof(*op));
    else
        PyErr_SetString(PyExc_ValueError, "not one record");
    PyBuffer_Release(&view);
    return fits;
}

const char start_doc[] =
    "start(endpoint, type, kind, record, keep, nanoseconds) -> Request, COMPLETED, or the core's error";
PyObject *start_record(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *record, *owner;
    struct buffer_reference reference = {0};
    struct ofp_operation op;
    long long timeout;
    int kind;

    if (!PyArg_ParseTuple(arguments, "OOiOOL", &endpoint, &type, &kind, &record, &owner, &timeout) ||
        !copy_record(record, &op))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    Py_INCREF(owner);
    reference.owner = owner;
    return poster_operation_post(poster, endpoint, type, &op, timeout, (enum kind)kind, &reference);
}

const char prepare_doc[] = "prepare(endpoint, type, record, keep) -> Request, or the core's error";
PyObject *prepare_record(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *record, *owner;
    struct request *request;
    struct buffer_reference reference = {0};
    struct ofp_operation op;
    ofp_request_t handle;

    if (!PyArg_ParseTuple(arguments, "OOOO", &endpoint, &type, &record, &owner) || !copy_record(record, &op))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    handle = core.ofp_prepare(poster->pointer, &op);
    if (handle < 0) {
        Py_DECREF((PyObject *)request);
        return PyLong_FromLongLong(handle);
    }
    Py_INCREF(owner);
    reference.owner = owner;
    request_operation_attach(request, poster, endpoint, handle, &op, &reference);
    request->kind = PREPARED;
    request->is_delivered = 1;
    return (PyObject *)request;
}

const char adopt_doc[] = "adopt(endpoint, type, handle, peer) -> Request of an operation without memory";
PyObject *adopt_handle(PyObject *self, PyObject *arguments)
{
    PyObject *endpoint, *type;
    struct ofp_operation op = {0};
    struct request *request;
    struct buffer_reference nothing = {0};
    long long handle;

    if (!PyArg_ParseTuple(arguments, "OOLI", &endpoint, &type, &handle, &op.peer))
        return NULL;
    request = request_allocate((PyTypeObject *)type);
    if (request)
        request_operation_attach(request, (struct poster *)self, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}

static ofp_request_t request_connection(struct ofp_endpoint *endpoint, uint32_t peer, uint64_t patience)
{
    ofp_request_t handle;

    Py_BEGIN_ALLOW_THREADS handle = core.ofp_reach_request(endpoint, peer, patience);
    Py_END_ALLOW_THREADS return handle;
}

const char reach_doc[] =
    "reach(endpoint, type, peer, nanoseconds) -> Request that ends when the peer is connected, or error";
PyObject *connect_peer(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type;
    struct ofp_operation op = {0};
    struct request *request;
    struct buffer_reference nothing = {0};
    unsigned long long patience;
    ofp_request_t handle;

    if (!PyArg_ParseTuple(arguments, "OOIK", &endpoint, &type, &op.peer, &patience))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    handle = request_connection(poster->pointer, op.peer, patience);
    if (handle < 0) {
        Py_DECREF((PyObject *)request);
        return PyLong_FromLongLong(handle);
    }
    request_operation_attach(request, poster, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}
