/* SPDX-License-Identifier: BSD-3-Clause */
/* The type of waiters, as the tasks of asyncio use it. */
#include "requests.h"

#include <structmember.h>

static struct waiter *create_waiter(PyObject *request, bool ends_at_event)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(waiter_type, Py_tp_alloc);
    struct waiter *waiter = (struct waiter *)allocate(waiter_type, 0);

    if (!waiter)
        return NULL;
    Py_INCREF(request);
    waiter->request = (struct request *)request;
    waiter->ends_at_event = ends_at_event;
    return waiter;
}

PyObject *request_waiter_create(PyObject *request) { return (PyObject *)create_waiter(request, false); }

PyObject *request_event_waiter_create(PyObject *request, PyObject *Py_UNUSED(ignored))
{
    return (PyObject *)create_waiter(request, true);
}

/*
 * Raise StopIteration whose value is `result`, any object. PyErr_SetObject() would take a tuple as the arguments of the
 * exception, and an exception as the one to raise: only an instance carries every object.
 */
static void raise_stop_iteration(PyObject *result)
{
    PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, result, NULL);

    if (!stop)
        return;
    PyErr_SetObject(PyExc_StopIteration, stop);
    Py_DECREF(stop);
}

static PyObject *waiter_next(PyObject *self)
{
    PyObject *result;

    if (waiter_send(self, Py_None, &result) != PYGEN_RETURN)
        return result;
    raise_stop_iteration(result);
    Py_DECREF(result);
    return NULL;
}

static PyObject *send_to_waiter(PyObject *self, PyObject *Py_UNUSED(value)) { return waiter_next(self); }

static PyObject *raise_in_waiter(PyObject *self, PyObject *arguments)
{
    struct waiter *waiter = (struct waiter *)self;
    PyObject *kind, *error = NULL, *trace = NULL;
    int cancelled;
    bool is_done;

    if (!PyArg_UnpackTuple(arguments, "throw", 1, 3, &kind, &error, &trace))
        return NULL;
    if (PyExceptionInstance_Check(kind)) {
        error = kind;
        kind = (PyObject *)Py_TYPE(error);
    }
    cancelled = waiter->poller ? PyObject_IsSubclass(kind, waiter->poller->cancelled) : 0;
    is_done = cancelled == 0 || (cancelled > 0 && cancel_receive(waiter));
    deregister_waiter(waiter);
    if (is_done)
        PyErr_SetObject(kind, error == Py_None ? NULL : error);
    return NULL;
}

static PyObject *close_waiter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    deregister_waiter((struct waiter *)self);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------------------------------------- what its task asks it */

static PyObject *get_waiter_loop(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *loop = ((struct waiter *)self)->poller->loop;

    Py_INCREF(loop);
    return loop;
}

static PyObject *add_done_callback(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "context", NULL};
    struct waiter *waiter = (struct waiter *)self;
    PyObject *callback, *context = Py_None;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$O", names, &callback, &context))
        return NULL;
    replace_object(&waiter->callback, callback);
    replace_object(&waiter->context, context);
    Py_RETURN_NONE;
}

/* "No": the task then ends it by throwing into it, once it is resumed. */
static PyObject *cancel_waiter(PyObject *self, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    struct waiter *waiter = (struct waiter *)self;

    if (!waiter->woken) {
        waiter->woken = 1;
        if (PyList_Append(waiter->poller->woken, self) != 0)
            return NULL;
        poller_schedule(waiter->poller);
    }
    Py_RETURN_FALSE;
}

static PyObject *get_waiter_result(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored)) { Py_RETURN_NONE; }

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static int waiter_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct waiter *waiter = (struct waiter *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)waiter->request);
    Py_VISIT((PyObject *)waiter->poller);
    Py_VISIT(waiter->callback);
    Py_VISIT(waiter->context);
    return 0;
}

static int waiter_clear(PyObject *self)
{
    struct waiter *waiter = (struct waiter *)self;

    Py_CLEAR(waiter->callback);
    Py_CLEAR(waiter->context);
    return 0;
}

static void waiter_dealloc(PyObject *self)
{
    struct waiter *waiter = (struct waiter *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    deregister_waiter(waiter);
    waiter_clear(self);
    Py_CLEAR(waiter->request);
    Py_CLEAR(waiter->poller);
    release(self);
    Py_DECREF(type);
}

static PyMemberDef waiter_members[] = {
    {"_asyncio_future_blocking", T_BOOL, offsetof(struct waiter, is_blocking), 0, NULL},
    {0},
};

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
static PyMethodDef waiter_methods[] = {
    {"send", send_to_waiter, METH_O, NULL},
    {"throw", raise_in_waiter, METH_VARARGS, NULL},
    {"close", close_waiter, METH_NOARGS, NULL},
    {"get_loop", get_waiter_loop, METH_NOARGS, NULL},
    {"add_done_callback", WITH_KEYWORDS(add_done_callback), NULL},
    {"cancel", WITH_KEYWORDS(cancel_waiter), NULL},
    {"result", get_waiter_result, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot waiter_slots[] = {
    {Py_tp_doc, (void *)"What `await` of a request runs."},
    {Py_tp_traverse, waiter_traverse},
    {Py_tp_clear, waiter_clear},
    {Py_tp_dealloc, waiter_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, waiter_next},
    {Py_am_await, PyObject_SelfIter},
    {Py_am_send, waiter_send},
    {Py_tp_members, waiter_members},
    {Py_tp_methods, waiter_methods},
    {0},
};

static PyType_Spec waiter_spec = {
    .name = "ofipy._requests.Waiter",
    .basicsize = sizeof(struct waiter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = waiter_slots,
};

PyObject *waiter_type_create(PyObject *module) { return PyType_FromModuleAndSpec(module, &waiter_spec, NULL); }
