/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of one completion queue that somebody awaits.
 *
 * Whichever thread and loop looks at the queue takes what it tells of, for all: here the request is found by its handle, is
 * settled, and tells its waiters.
 */
#include "requests.h"

#include <errno.h>

#define TAKEN_AT_ONCE 64

static int remember(struct notices *notices, struct request *request)
{
    PyObject *key = PyLong_FromLongLong(request->handle);
    int result = key ? PyDict_SetItem(notices->requests, key, (PyObject *)request) : RAISED;

    Py_XDECREF(key);
    return result;
}

void notices_forget(struct notices *notices, ofp_request_t handle)
{
    PyObject *kind, *error, *trace, *key;

    PyErr_Fetch(&kind, &error, &trace);
    key = PyLong_FromLongLong(handle);
    /* Not there any more: the queue was closed. */
    if (!key || PyDict_DelItem(notices->requests, key) != 0)
        PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(kind, error, trace);
}

int notices_ask(struct notices *notices, struct request *request)
{
    int asked, settled;

    /* Before the core is asked to tell: another thread may take it at once. */
    if (remember(notices, request) != 0)
        return RAISED;
    for (;;) {
        asked = core.ofp_request_notify(request->handle, true);
        if (asked == -ENOLCK) {
            Py_BEGIN_ALLOW_THREADS asked = core.ofp_request_notify(request->handle, false);
            Py_END_ALLOW_THREADS
        }
        if (asked == 0)
            return NOT_YET;
        settled = request_settle(request, 0);
        if (settled != NOT_YET)
            return settled;
    }
}

/* One that the queue has told of. 0, or RAISED. */
static int tell_of(struct notices *notices, ofp_request_t handle)
{
    PyObject *key = PyLong_FromLongLong(handle);
    PyObject *found = key ? PyDict_GetItemWithError(notices->requests, key) : NULL;
    int result;

    Py_XDECREF(key);
    if (!found)
        return PyErr_Occurred() ? RAISED : 0;
    Py_INCREF(found);
    result = request_settle((struct request *)found, 0);
    /* Its message is on the way into memory. */
    if (result == NOT_YET)
        result = notices_ask(notices, (struct request *)found);
    Py_DECREF(found);
    return result == RAISED ? RAISED : 0;
}

static int64_t take(struct notices *notices, ofp_request_t *handles, bool progress)
{
    int64_t count;

    if (!notices->pointer)
        return -ECANCELED;
    count = core.ofp_cq_take_finished(notices->pointer, handles, TAKEN_AT_ONCE);
    if (count == -ENOLCK || (count == 0 && progress)) {
        struct ofp_cq *pointer = notices->pointer;

        Py_BEGIN_ALLOW_THREADS count = core.ofp_cq_finished(pointer, handles, TAKEN_AT_ONCE);
        Py_END_ALLOW_THREADS
    }
    return count;
}

int64_t notices_collect(struct notices *notices, bool progress)
{
    ofp_request_t handles[TAKEN_AT_ONCE];
    int64_t count, total = 0;

    do {
        count = take(notices, handles, progress && !total);
        if (count < 0)
            return count;
        for (int64_t i = 0; i < count; i++)
            if (tell_of(notices, handles[i]) != 0)
                return INT64_MIN;
        total += count;
    } while (count == TAKEN_AT_ONCE);
    return total;
}

int notices_arm(struct notices *notices, bool at_once)
{
    struct ofp_cq *pointer = notices->pointer;
    int armed = pointer ? core.ofp_cq_arm_at_once(pointer) : -ECANCELED;

    if (armed != 0 && armed != -ENOLCK)
        return armed;
    if (at_once)
        return 0;
    Py_BEGIN_ALLOW_THREADS armed = core.ofp_cq_arm(pointer);
    Py_END_ALLOW_THREADS return armed;
}

/* ------------------------------------------------------------------------------------------------------------- methods */

static PyObject *notices_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct notices *notices;
    unsigned long long pointer;
    PyObject *owner, *queue;

    if (!PyArg_ParseTuple(arguments, "KOO", &pointer, &owner, &queue))
        return NULL;
    notices = (struct notices *)allocate(type, 0);
    if (!notices)
        return NULL;
    notices->pointer = (struct ofp_cq *)(uintptr_t)pointer;
    replace_object(&notices->owner, owner);
    replace_object(&notices->queue, queue);
    notices->requests = PyDict_New();
    if (notices->requests)
        return (PyObject *)notices;
    Py_DECREF((PyObject *)notices);
    return NULL;
}

static PyObject *collect(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t result = notices_collect((struct notices *)self, true);

    return result == INT64_MIN ? NULL : PyLong_FromLongLong(result);
}

static PyObject *notices_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct notices *notices = (struct notices *)self;

    notices->pointer = NULL;
    PyDict_Clear(notices->requests);
    Py_RETURN_NONE;
}

static int notices_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct notices *notices = (struct notices *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(notices->owner);
    Py_VISIT(notices->queue);
    Py_VISIT(notices->requests);
    return 0;
}

static int notices_clear(PyObject *self)
{
    struct notices *notices = (struct notices *)self;

    if (notices->requests)
        PyDict_Clear(notices->requests);
    return 0;
}

static void notices_dealloc(PyObject *self)
{
    struct notices *notices = (struct notices *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    Py_CLEAR(notices->requests);
    Py_CLEAR(notices->queue);
    Py_CLEAR(notices->owner);
    release(self);
    Py_DECREF(type);
}

static Py_ssize_t notices_length(PyObject *self) { return PyDict_Size(((struct notices *)self)->requests); }

static PyObject *notices_queue(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_CallNoArgs(((struct notices *)self)->queue);
}

static PyMethodDef notices_methods[] = {
    {"queue", notices_queue, METH_NOARGS, "The queue, None once it is gone."},
    {"collect", collect, METH_NOARGS, "Take what the queue has told of, after a look: how many, or the core's error."},
    {"close", notices_close, METH_NOARGS, "The queue is closed."},
    {0},
};

static PyType_Slot notices_slots[] = {
    {Py_tp_doc,
     (void *)"Notices(pointer, its owner, weak reference to the queue): the requests of a queue that somebody awaits."},
    {Py_tp_new, notices_new},
    {Py_tp_traverse, notices_traverse},
    {Py_tp_clear, notices_clear},
    {Py_tp_dealloc, notices_dealloc},
    {Py_tp_methods, notices_methods},
    {Py_mp_length, notices_length},
    {0},
};

static PyType_Spec notices_spec = {
    .name = "ofipy._requests.Notices",
    .basicsize = sizeof(struct notices),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = notices_slots,
};

PyObject *make_notices_type(PyObject *module) { return PyType_FromModuleAndSpec(module, &notices_spec, NULL); }
