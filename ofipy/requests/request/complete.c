/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of the operation of a request. */
#include "requests.h"

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
void notify_watchers(struct request *request)
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
