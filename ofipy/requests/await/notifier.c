/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion notifier of one completion queue: it finds the awaited requests that have finished, and completes them, which
 * wakes their waiters.
 */
#include "await/await.h"

#include <errno.h>

#define HANDLES_PER_READ 64

static int add_request(struct notifier *notifier, struct request *request)
{
    PyObject *key = PyLong_FromLongLong(request->handle);
    int result = key ? PyDict_SetItem(notifier->requests, key, (PyObject *)request) : RAISED;

    Py_XDECREF(key);
    return result;
}

void notifier_request_remove(struct notifier *notifier, ofp_request_t handle)
{
    PyObject *kind, *error, *trace, *key;

    PyErr_Fetch(&kind, &error, &trace);
    key = PyLong_FromLongLong(handle);
    /* An error only says that it is not there: the queue was closed. */
    if (!key || PyDict_DelItem(notifier->requests, key) != 0)
        PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(kind, error, trace);
}

int notifier_request_register(struct notifier *notifier, struct request *request)
{
    ofp_request_t handle;
    int asked, state;

    /* GIL: stored before the core is asked to report: another thread may read the report at once. */
    if (add_request(notifier, request) != 0)
        return RAISED;
    for (;;) {
        handle = request->handle;
        asked = core.ofp_request_notify(handle, true);
        if (asked == -ENOLCK) {
            Py_BEGIN_ALLOW_THREADS asked = core.ofp_request_notify(handle, false);
            Py_END_ALLOW_THREADS
        }
        if (asked == 0)
            return NOT_YET;
        state = request_wait_once(request, 0);
        if (state != NOT_YET)
            return state;
    }
}

/* Complete a request that the queue has reported: 0, or RAISED. A request without waiters is ignored. */
static int handle_reported_request(struct notifier *notifier, ofp_request_t handle)
{
    PyObject *key = PyLong_FromLongLong(handle);
    PyObject *found = key ? PyDict_GetItemWithError(notifier->requests, key) : NULL;
    int result;

    Py_XDECREF(key);
    if (!found)
        return PyErr_Occurred() ? RAISED : 0;
    Py_INCREF(found);
    result = request_wait_once((struct request *)found, 0);
    /* A message was set aside, and is being received into memory: the queue reports the request again. */
    if (result == NOT_YET)
        result = notifier_request_register(notifier, (struct request *)found);
    Py_DECREF(found);
    return result == RAISED ? RAISED : 0;
}

static int64_t read_handles(struct notifier *notifier, ofp_request_t *handles, bool progress)
{
    int64_t count;

    if (!notifier->pointer)
        return -ECANCELED;
    count = core.ofp_cq_take_finished(notifier->pointer, handles, HANDLES_PER_READ);
    if (count == -ENOLCK || (count == 0 && progress)) {
        struct ofp_cq *pointer = notifier->pointer;

        Py_BEGIN_ALLOW_THREADS count = core.ofp_cq_finished(pointer, handles, HANDLES_PER_READ);
        Py_END_ALLOW_THREADS
    }
    return count;
}

int64_t notifier_collect(struct notifier *notifier, bool progress)
{
    ofp_request_t handles[HANDLES_PER_READ];
    int64_t count, total = 0;

    do {
        count = read_handles(notifier, handles, progress && !total);
        if (count < 0)
            return count;
        OFP_CHECK(count <= HANDLES_PER_READ);
        for (int64_t i = 0; i < count; i++)
            if (handle_reported_request(notifier, handles[i]) != 0)
                return INT64_MIN;
        total += count;
    } while (count == HANDLES_PER_READ);
    return total;
}

int notifier_queue_arm(struct notifier *notifier, bool at_once)
{
    struct ofp_cq *pointer = notifier->pointer;
    int armed = pointer ? core.ofp_cq_arm_at_once(pointer) : -ECANCELED;

    if (armed != 0 && armed != -ENOLCK)
        return armed;
    if (at_once)
        return 0;
    Py_BEGIN_ALLOW_THREADS armed = core.ofp_cq_arm(pointer);
    Py_END_ALLOW_THREADS return armed;
}

/* ------------------------------------------------------------------------------------------------------------- methods */

static PyObject *notifier_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct notifier *notifier;
    unsigned long long pointer;
    PyObject *owner, *queue;

    if (!PyArg_ParseTuple(arguments, "KOO", &pointer, &owner, &queue))
        return NULL;
    notifier = (struct notifier *)allocate(type, 0);
    if (!notifier)
        return NULL;
    notifier->pointer = (struct ofp_cq *)(uintptr_t)pointer;
    replace_object(&notifier->owner, owner);
    replace_object(&notifier->queue, queue);
    notifier->requests = PyDict_New();
    if (notifier->requests)
        return (PyObject *)notifier;
    Py_DECREF((PyObject *)notifier);
    return NULL;
}

static PyObject *collect_finished_requests(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t result = notifier_collect((struct notifier *)self, true);

    return result == INT64_MIN ? NULL : PyLong_FromLongLong(result);
}

static PyObject *close_notifier(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct notifier *notifier = (struct notifier *)self;

    notifier->pointer = NULL;
    PyDict_Clear(notifier->requests);
    Py_RETURN_NONE;
}

static int notifier_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct notifier *notifier = (struct notifier *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(notifier->owner);
    Py_VISIT(notifier->queue);
    Py_VISIT(notifier->requests);
    return 0;
}

static int notifier_clear(PyObject *self)
{
    struct notifier *notifier = (struct notifier *)self;

    if (notifier->requests)
        PyDict_Clear(notifier->requests);
    return 0;
}

static void notifier_dealloc(PyObject *self)
{
    struct notifier *notifier = (struct notifier *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    Py_CLEAR(notifier->requests);
    Py_CLEAR(notifier->queue);
    Py_CLEAR(notifier->owner);
    release(self);
    Py_DECREF(type);
}

static Py_ssize_t notifier_length(PyObject *self) { return PyDict_Size(((struct notifier *)self)->requests); }

static PyObject *get_notifier_queue(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_CallNoArgs(((struct notifier *)self)->queue);
}

static PyMethodDef notifier_methods[] = {
    {"queue", get_notifier_queue, METH_NOARGS, "The queue, None once it is gone."},
    {"collect", collect_finished_requests, METH_NOARGS,
     "Make progress and complete what the queue reports: how many, or the core's error."},
    {"close", close_notifier, METH_NOARGS, "The queue is closed."},
    {0},
};

static PyType_Slot notifier_slots[] = {
    {Py_tp_doc, (void *)"Notices(pointer, its owner, weak reference to the queue): the awaited requests of a queue."},
    {Py_tp_new, notifier_new},
    {Py_tp_traverse, notifier_traverse},
    {Py_tp_clear, notifier_clear},
    {Py_tp_dealloc, notifier_dealloc},
    {Py_tp_methods, notifier_methods},
    {Py_mp_length, notifier_length},
    {0},
};

static PyType_Spec notifier_spec = {
    .name = "ofipy._requests.Notices",
    .basicsize = sizeof(struct notifier),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = notifier_slots,
};

PyObject *notifier_type_create(PyObject *module) { return PyType_FromModuleAndSpec(module, &notifier_spec, NULL); }
