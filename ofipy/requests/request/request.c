/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. What can end one (the core, another thread, a closed domain) is met in request_settle(); what a signal handler may
 * interrupt is written so that the request says the same afterwards.
 */
#include "memory/memory.h"
#include "requests.h"

#include <errno.h>
#include <structmember.h>

struct request *request_allocate(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return (struct request *)allocate(type, 0);
}

void request_operation_attach(struct request *request, struct poster *poster, PyObject *endpoint, ofp_request_t handle,
                              const struct ofp_operation *op, struct buffer_reference *reference)
{
    replace_object(&request->poster, (PyObject *)poster);
    replace_object(&request->endpoint, endpoint);
    request->handle = handle;
    request->op = op->op;
    request->peer = op->peer;
    request->buffer_length = op->length;
    request->buffer = *reference;
}

/* ------------------------------------------------------------------------------------------------------------- the end */

/* Tell whoever watches. What they raise is not this caller's affair. */
static void notify_watchers(struct request *request)
{
    PyObject *watchers = request->watchers, *kind, *error, *trace;

    if (__builtin_expect(!watchers, 1))
        return;
    /* First, for whoever is called may watch again. */
    request->watchers = NULL;
    /* An exception may be on its way already, and is not to be lost to theirs. */
    PyErr_Fetch(&kind, &error, &trace);
    for (Py_ssize_t i = 0; i < PyList_Size(watchers); i++) {
        PyObject *watcher = PyList_GetItem(watchers, i), *answer;

        if (Py_TYPE(watcher) == waiter_type) {
            waiter_wake((struct waiter *)watcher);
            continue;
        }
        answer = PyObject_CallNoArgs(watcher);
        if (!answer)
            PyErr_WriteUnraisable(watcher);
        Py_XDECREF(answer);
    }
    Py_DECREF(watchers);
    PyErr_Restore(kind, error, trace);
}

int request_complete(struct request *request)
{
    request->has_result = 1;
    /* A message that it received is the core's still, in this memory, until the program has it. */
    if (request->kind != PREPARED && !(request->is_claimed && !request->completion.error)) {
        request->handle = 0;
        request->is_claimed = 0;
        buffer_reference_release(&request->buffer);
    }
    notify_watchers(request);
    return FINISHED;
}

int request_end(struct request *request, int error)
{
    request->completion.error = error;
    return request_complete(request);
}

static int append_row(struct request *request, const struct ofp_completion *completion)
{
    PyObject *row = PyBytes_FromStringAndSize((const char *)completion, sizeof(*completion));
    int result = RAISED;

    if (row && !request->rows)
        request->rows = PyList_New(0);
    if (row && request->rows)
        result = PyList_Append(request->rows, row);
    Py_XDECREF(row);
    if (result != 0)
        return RAISED;
    if (completion->flags & OFP_COMPLETED_MULTI_RECV)
        return request_complete(request);
    notify_watchers(request);
    return FINISHED;
}

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

/* ------------------------------------------------------------------------------------------------------------- methods */

static bool drain_log(void)
{
    PyObject *result = PyObject_CallNoArgs(hooks.drain_log);

    Py_XDECREF(result);
    return result != NULL;
}

/* 1: it has finished; 0: the time is over; -1: an exception. */
static int wait_until_deadline(struct request *request, int64_t timeout)
{
    int64_t deadline = timeout < 0 ? 0 : get_time_ns() + timeout, left = timeout;

    for (;;) {
        int result = request_wait_once(request, left);

        if (result != NOT_YET)
            return result;
        /* Between two rounds signal handlers run; Ctrl-C leaves from here, and the operation goes on. */
        if (PyErr_CheckSignals() != 0 || (core.ofp_log_waiting() && !drain_log()))
            return RAISED;
        /* It may have finished just as the time ran out. */
        if (timeout >= 0 && (left = deadline - get_time_ns()) <= 0)
            return request_wait_once(request, 0);
    }
}

/* Nanoseconds, -1 for ever; -2 with an exception. */
static int64_t convert_timeout(PyObject *timeout)
{
    PyObject *number;
    int64_t result;

    if (timeout == Py_None)
        return -1;
    number = PyObject_CallFunctionObjArgs(hooks.nanoseconds, timeout, NULL);
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

static PyObject *wait_for_request(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct request *request = (struct request *)self;
    PyObject *timeout = get_timeout_argument(arguments, count, names);
    int64_t nanoseconds = timeout ? convert_timeout(timeout) : -2;
    int result = nanoseconds < -1 ? RAISED : wait_until_deadline(request, nanoseconds);

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
    int result = nanoseconds < -1 ? RAISED : wait_until_deadline((struct request *)self, nanoseconds);

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
             "End as cancelled, whatever the operation still does; a message that it holds goes to the next receive.");
static PyObject *abandon_request(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct request *request = (struct request *)self;

    if (request_has_operation(request)) {
        request_operation_abandon((struct poster *)request->poster, request);
        request_end(request, ECANCELED);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(watch_doc,
             "watch(function): call it once when there is news. False: there is already, and it is not called.");
static PyObject *add_watcher(PyObject *self, PyObject *function)
{
    struct request *request = (struct request *)self;

    if ((request->kind != PREPARED && request->has_result) || (request->rows && PyList_Size(request->rows) > 0))
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
    Py_VISIT(request->poster);
    Py_VISIT(request->watchers);
    Py_VISIT(request->rows);
    Py_VISIT(request->fetched);
    Py_VISIT(request->buffer.owner);
    return 0;
}

static int request_clear(PyObject *self)
{
    struct request *request = (struct request *)self;

    /* Before its hold is released: of an operation that runs on the poster keeps the memory. */
    if (request_has_operation(request))
        request_operation_abandon((struct poster *)request->poster, request);
    buffer_reference_release(&request->buffer);
    Py_CLEAR(request->watchers);
    Py_CLEAR(request->rows);
    Py_CLEAR(request->fetched);
    Py_CLEAR(request->endpoint);
    Py_CLEAR(request->poster);
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
    {"_finished", is_request_finished, NULL, "Whether the core, or this, has its result; looks only.", NULL},
    {"_has_data", has_remote_data, NULL, "Whether remote CQ data came with the message.", NULL},
    {"_rows", request_rows_count, NULL, "How many rows of a multi-receive buffer wait to be looked at.", NULL},
    {"_kept", request_is_delivered, request_delivered_set,
     "Whether the program has what the posting call, or the wait, returned.", NULL},
    {"_keep", get_buffer_owner, NULL, "What keeps its memory.", NULL},
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
    {"_cancel", cancel_request, METH_NOARGS, "Ask the core to cancel: its answer."},
    {"_unclaim", request_message_return, METH_NOARGS, request_message_return_doc},
    {"_leave", abandon_request, METH_NOARGS, leave_doc},
    {"_watch", add_watcher, METH_O, watch_doc},
    {"_news", request_event_waiter_create, METH_NOARGS, "To be awaited: ends when there is news."},
    {0},
};

static PyType_Slot request_slots[] = {
    {Py_tp_doc, (void *)"The part of a request that is C."},
    {Py_tp_traverse, request_traverse},
    {Py_tp_clear, request_clear},
    {Py_tp_dealloc, request_dealloc},
    {Py_tp_members, request_members},
    {Py_tp_getset, request_attributes},
    {Py_tp_methods, request_methods},
    {Py_am_await, request_waiter_create},
    {0},
};

static PyType_Spec request_spec = {
    .name = "ofipy._requests.RequestBase",
    .basicsize = sizeof(struct request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = request_slots,
};

PyObject *request_type_create(PyObject *module) { return PyType_FromModuleAndSpec(module, &request_spec, NULL); }
