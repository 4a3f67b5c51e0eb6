/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that Python has described in full: a record, the memory's owner, the type and the kind of the request.
 */
#include "submit/submit.h"

#include <errno.h>

/* A record that Python has built: the bytes of a struct ofp_operation. */
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

const char poster_record_start_doc[] =
    "start(endpoint, type, kind, record, keep, nanoseconds) -> Request, COMPLETED, or the core's error";
PyObject *poster_record_start(PyObject *self, PyObject *arguments)
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

const char poster_record_prepare_doc[] = "prepare(endpoint, type, record, keep) -> Request, or the core's error";
PyObject *poster_record_prepare(PyObject *self, PyObject *arguments)
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
    request_operation_attach(request, &poster->orphans, endpoint, handle, &op, &reference);
    request->kind = PREPARED;
    request->is_delivered = 1;
    return (PyObject *)request;
}

const char poster_handle_adopt_doc[] = "adopt(endpoint, type, handle, peer) -> Request of an operation without memory";
PyObject *poster_handle_adopt(PyObject *self, PyObject *arguments)
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
        request_operation_attach(request, &((struct poster *)self)->orphans, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}

static ofp_request_t request_connection(struct ofp_endpoint *endpoint, uint32_t peer, uint64_t patience)
{
    ofp_request_t handle;

    Py_BEGIN_ALLOW_THREADS handle = core.ofp_reach_request(endpoint, peer, patience);
    Py_END_ALLOW_THREADS return handle;
}

const char poster_peer_connect_doc[] =
    "reach(endpoint, type, peer, nanoseconds) -> Request that ends when the peer is connected, or error";
PyObject *poster_peer_connect(PyObject *self, PyObject *arguments)
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
    request_operation_attach(request, &poster->orphans, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}
