/* SPDX-License-Identifier: BSD-3-Clause */
/* The Python type of requests, without `await`; await/awaitable.c derives the type that the program's requests have. */
#include "request/request.h"

#include <errno.h>
#include <structmember.h>

PyTypeObject *request_type;

/* ------------------------------------------------------------------------------------------------------------- methods */

/* Nanoseconds; -1: no limit; -2: an exception was raised. */
static int64_t convert_timeout(PyObject *timeout)
{
    PyObject *number;
    int64_t result;

    if (timeout == Py_None)
        return -1;
    number = PyObject_CallFunctionObjArgs(request_python.nanoseconds, timeout, NULL);
    result = number ? PyLong_AsLongLong(number) : -2;
    Py_XDECREF(number);
    return result;
}

static PyObject *get_timeout_argument(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    if (count + (names ? PyTuple_Size(names) : 0) == 0)
        return Py_None;
    if (count == 1 && !names)
        return arguments[0];
    if (count == 0 && PyTuple_Size(names) == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "timeout") == 0)
        return arguments[0];
    PyErr_SetString(PyExc_TypeError, "wait() takes one argument, timeout: seconds, or None for ever");
    return NULL;
}

static PyObject *wait_for_request(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct request *request = (struct request *)self;
    PyObject *timeout = get_timeout_argument(arguments, count, names);
    int64_t nanoseconds = timeout ? convert_timeout(timeout) : -2;
    int result = nanoseconds < -1 ? RAISED : request_wait(request, nanoseconds);

    if (result == RAISED)
        return NULL;
    if (result == NOT_YET)
        return PyObject_CallMethod(self, "_timed_out", "(O)", timeout);
    return request_outcome_get(request);
}

static PyObject *try_request(PyObject *self, PyObject *timeout)
{
    struct request *request = (struct request *)self;
    int64_t nanoseconds = PyLong_AsLongLong(timeout);
    int result;

    if (nanoseconds == -1 && PyErr_Occurred())
        return NULL;
    result = request_wait_once(request, nanoseconds);
    return result == RAISED ? NULL : PyBool_FromLong(result == FINISHED);
}

static PyObject *wait_for_completion(PyObject *self, PyObject *timeout)
{
    int64_t nanoseconds = convert_timeout(timeout);
    int result = nanoseconds < -1 ? RAISED : request_wait((struct request *)self, nanoseconds);

    return result == RAISED ? NULL : PyBool_FromLong(result == FINISHED);
}

static PyObject *is_request_finished(PyObject *self, void *Py_UNUSED(closure))
{
    struct request *request = (struct request *)self;

    if (request->kind != PREPARED && (request->has_result || !request->handle))
        Py_RETURN_TRUE;
    return PyBool_FromLong(core.ofp_request_finished(request->handle) != 0);
}

static PyObject *cancel_request(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    ofp_request_t handle = ((struct request *)self)->handle;
    int result = -ENOENT;

    if (handle) {
        Py_BEGIN_ALLOW_THREADS result = core.ofp_request_cancel(handle);
        Py_END_ALLOW_THREADS
    }
    return PyLong_FromLong(result);
}

PyDoc_STRVAR(leave_doc,
             "End as cancelled, although the operation may continue; a message that was set aside is returned.");
static PyObject *abandon_request(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct request *request = (struct request *)self;

    if (request_has_operation(request)) {
        request_operation_abandon(request);
        request_end(request, ECANCELED);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    watch_doc,
    "watch(function): call it once, at the next event. False: there is a result or a row already, and it is not called.");
static PyObject *add_watcher(PyObject *self, PyObject *function)
{
    struct request *request = (struct request *)self;

    if ((request->kind != PREPARED && request->has_result) || request->rows.count)
        Py_RETURN_FALSE;
    if (!request->watchers && !(request->watchers = PyList_New(0)))
        return NULL;
    if (PyList_Append(request->watchers, function) != 0)
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *has_remote_data(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong((((struct request *)self)->completion.flags & OFP_COMPLETED_REMOTE_CQ_DATA) != 0);
}

static PyObject *get_buffer_owner(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *owner = ((struct request *)self)->buffer.owner;

    owner = owner ? owner : Py_None;
    Py_INCREF(owner);
    return owner;
}

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static int request_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct request *request = (struct request *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(request->endpoint);
    Py_VISIT(request->orphans);
    Py_VISIT(request->waiters);
    Py_VISIT(request->watchers);
    Py_VISIT(request->fetched);
    Py_VISIT(request->buffer.owner);
    return 0;
}

static int request_clear(PyObject *self)
{
    struct request *request = (struct request *)self;

    /* Before the buffer reference is released: if the operation still runs, the reference moves to an orphan. */
    if (request_has_operation(request))
        request_operation_abandon(request);
    buffer_reference_release(&request->buffer);
    Py_CLEAR(request->waiters);
    Py_CLEAR(request->watchers);
    request_rows_free(request);
    Py_CLEAR(request->fetched);
    Py_CLEAR(request->endpoint);
    Py_CLEAR(request->orphans);
    return 0;
}

static void request_dealloc(PyObject *self)
{
    struct request *request = (struct request *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    if (request->weak_references)
        PyObject_ClearWeakRefs(self);
    request_clear(self);
    release(self);
    Py_DECREF(type);
}

#define FIELD(name, type, field, flags) {name, type, offsetof(struct request, field), flags, NULL}
static PyMemberDef request_members[] = {
    FIELD("__weaklistoffset__", T_PYSSIZET, weak_references, READONLY),
    FIELD("_endpoint", T_OBJECT, endpoint, READONLY),
    FIELD("_handle", T_LONGLONG, handle, READONLY),
    FIELD("_op", T_USHORT, op, READONLY),
    FIELD("_peer", T_UINT, peer, READONLY),
    FIELD("_incarnation", T_UINT, incarnation, READONLY),
    FIELD("_fetched", T_OBJECT, fetched, 0),
    FIELD("_over", T_BOOL, has_result, 0),
    FIELD("_awaiting", T_INT, waiter_count, 0),
    FIELD("_claimed", T_BOOL, is_claimed, READONLY),
    FIELD("_too_large", T_BOOL, is_too_large, READONLY),
    FIELD("_gone", T_BOOL, is_result_lost, 0),
    FIELD("_room", T_ULONGLONG, buffer_length, READONLY),
    FIELD("_length", T_ULONGLONG, completion.length, 0),
    FIELD("_tag", T_ULONGLONG, completion.tag, READONLY),
    FIELD("_data", T_ULONGLONG, completion.data, READONLY),
    FIELD("_source", T_UINT, completion.source, READONLY),
    FIELD("_receiver", T_UINT, completion.endpoint, READONLY),
    FIELD("_flags", T_ULONGLONG, completion.flags, READONLY),
    FIELD("_error", T_INT, completion.error, READONLY),
    FIELD("_provider_error", T_INT, completion.provider_error, READONLY),
    {0},
};

static PyGetSetDef request_attributes[] = {
    {"_finished", is_request_finished, NULL, "Whether the result is here, or in the core; makes no progress.", NULL},
    {"_has_data", has_remote_data, NULL, "Whether remote CQ data came with the message.", NULL},
    {"_rows", request_rows_count, NULL, "How many rows of a multi-receive buffer are stored.", NULL},
    {"_kept", request_is_delivered, request_delivered_set,
     "Whether the program has what the posting call, or the wait, returned.", NULL},
    {"_keep", get_buffer_owner, NULL, "The object that keeps its memory alive, or None.", NULL},
    {"_next_message", request_row_pop, NULL, "The next row of a multi-receive buffer.", NULL},
    {0},
};

PyDoc_STRVAR(wait_doc,
             "wait($self, /, timeout=None)\n--\n\nWait until the operation has finished.\n\n"
             "Parameters\n----------\ntimeout : float, optional\n    Seconds; None: for ever. After a time-out, or "
             "Ctrl-C, the operation goes on.\n\nReturns\n-------\nRequest or Message\n    The request itself; for a "
             "receive of unknown size the message.\n\nRaises\n------\nTimedOut\n    When the time is over.\n"
             "Canceled, Truncated, PeerLost and other FabricError\n    What the operation ended with.\n");
static PyMethodDef request_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))wait_for_request, METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"_attempt", try_request, METH_O, "_attempt(nanoseconds): wait once, at most a second; whether it has finished."},
    {"_await", wait_for_completion, METH_O, "_await(seconds or None): whether it has finished within the time."},
    {"_cancel", cancel_request, METH_NOARGS, "Ask the core to cancel the operation: the core's result."},
    {"_unclaim", request_message_return, METH_NOARGS, request_message_return_doc},
    {"_leave", abandon_request, METH_NOARGS, leave_doc},
    {"_watch", add_watcher, METH_O, watch_doc},
    {0},
};

static PyType_Slot request_slots[] = {
    {Py_tp_doc, (void *)"A request without `await`: the base of RequestBase."},
    {Py_tp_traverse, request_traverse},
    {Py_tp_clear, request_clear},
    {Py_tp_dealloc, request_dealloc},
    {Py_tp_members, request_members},
    {Py_tp_getset, request_attributes},
    {Py_tp_methods, request_methods},
    {0},
};

static PyType_Spec request_spec = {
    .name = "ofipy._requests.Waitable",
    .basicsize = sizeof(struct request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = request_slots,
};

PyObject *request_type_create(PyObject *module)
{
    if (!wake_queue_init())
        return NULL;
    request_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &request_spec, NULL);
    return (PyObject *)request_type;
}
