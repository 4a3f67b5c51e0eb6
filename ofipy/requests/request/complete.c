/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a request's operation, and the notification of those who wait for it. */
#include "request/request.h"

struct request_python request_python;

/* -------------------------------------------------------------------------------------------------------------- begin */

struct request *request_allocate(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return (struct request *)allocate(type, 0);
}

void request_operation_attach(struct request *request, struct orphan_owner *orphans, PyObject *endpoint,
                              ofp_request_t handle, const struct ofp_operation *op, struct buffer_reference *reference)
{
    OFP_CHECK(handle > 0);
    OFP_CHECK(!request->handle && !request->has_result);
    replace_object(&request->orphans, (PyObject *)orphans);
    replace_object(&request->endpoint, endpoint);
    request->handle = handle;
    request->op = op->op;
    request->peer = op->peer;
    request->buffer_length = op->length;
    request->buffer = *reference;
}

void request_operation_abandon(struct request *request)
{
    bool receives = request->op == OFP_RECV || request->op == OFP_TRECV;
    bool cancel = request->kind == MESSAGE || (receives && !request->is_delivered);
    ofp_request_t handle = request->handle;

    OFP_CHECK(request_has_operation(request));
    /* Before the buffer is released: that runs code of the program, which must not find the handle any more. */
    request->handle = 0;
    request->is_claimed = 0;
    orphan_owner_add((struct orphan_owner *)request->orphans, handle, cancel, &request->buffer);
}

/* ------------------------------------------------------------------------------------------------------ waking waiters */

/* The name of the method that schedules a turn. It is made once, so that waking a task needs less memory. */
static PyObject *schedule_name;

bool wake_queue_init(void) { return (schedule_name = PyUnicode_InternFromString("_schedule")) != NULL; }

/* Whether the exception is the lack of memory, which may be there now; it is cleared then. */
static bool clear_memory_error(void)
{
    if (!PyErr_ExceptionMatches(PyExc_MemoryError))
        return false;
    PyErr_Clear();
    return true;
}

bool wake_queue_schedule(struct wake_queue *queue)
{
    PyObject *answer;

    if (queue->is_scheduled || queue->is_turning)
        return true;
    queue->is_scheduled = 1;
    answer = PyObject_CallMethodObjArgs((PyObject *)queue, schedule_name, NULL);
    /* The second call is made because nothing else may resume the tasks that were woken. */
    if (!answer && clear_memory_error())
        answer = PyObject_CallMethodObjArgs((PyObject *)queue, schedule_name, NULL);
    /* `is_scheduled` is not written after a success: the loop's thread may have begun the turn within the call. */
    if (!answer)
        queue->is_scheduled = 0;
    Py_XDECREF(answer);
    return answer != NULL;
}

void request_waiter_stop(struct request_waiter *waiter)
{
    if (!waiter->waiting)
        return;
    OFP_CHECK(*waiter->waiting > 0 && waiter->queue->waiting > 0);
    --*waiter->waiting;
    waiter->queue->waiting--;
    waiter->waiting = NULL;
}

bool request_waiter_resume(struct request_waiter *waiter)
{
    if (!waiter->is_woken) {
        if (PyList_Append(waiter->queue->woken, (PyObject *)waiter) != 0)
            return false;
        waiter->is_woken = 1;
    }
    return wake_queue_schedule(waiter->queue);
}

void request_waiter_wake(struct request_waiter *waiter)
{
    request_waiter_stop(waiter);
    waiter->queue->had_event = 1;
    if (!request_waiter_resume(waiter) && !(clear_memory_error() && request_waiter_resume(waiter)))
        PyErr_WriteUnraisable((PyObject *)waiter);
}

static void wake_waiters(PyObject *waiters)
{
    for (Py_ssize_t i = 0; waiters && i < PyList_Size(waiters); i++)
        request_waiter_wake((struct request_waiter *)PyList_GetItem(waiters, i));
    Py_XDECREF(waiters);
}

static void call_watchers(PyObject *watchers)
{
    for (Py_ssize_t i = 0; watchers && i < PyList_Size(watchers); i++) {
        PyObject *watcher = PyList_GetItem(watchers, i), *answer = PyObject_CallNoArgs(watcher);

        /* The error is the watcher's; the caller only completes a request. */
        if (!answer)
            PyErr_WriteUnraisable(watcher);
        Py_XDECREF(answer);
    }
    Py_XDECREF(watchers);
}

void request_waiters_wake(struct request *request)
{
    PyObject *waiters = request->waiters, *watchers = request->watchers, *kind, *error, *trace;

    /* Cleared first: a watcher may watch the request again, which begins a new list. */
    request->waiters = request->watchers = NULL;
    /* The caller may have an exception set, which the calls below would replace. */
    PyErr_Fetch(&kind, &error, &trace);
    wake_waiters(waiters);
    call_watchers(watchers);
    PyErr_Restore(kind, error, trace);
}

/* ---------------------------------------------------------------------------------------------------------------- end */

int request_complete(struct request *request)
{
    OFP_CHECK(!request->is_claimed || (request->kind == MESSAGE && request->handle));
    request->has_result = 1;
    /* A received message still belongs to the core, in this memory, until the program has it: request_delivered_set(). */
    if (request->kind != PREPARED && !(request->is_claimed && !request->completion.error)) {
        request->handle = 0;
        request->is_claimed = 0;
        buffer_reference_release(&request->buffer);
    }
    request_waiters_notify(request);
    return FINISHED;
}

int request_end(struct request *request, int error)
{
    request->completion.error = error;
    return request_complete(request);
}
