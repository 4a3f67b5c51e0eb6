/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam to asyncio: the type of waiters, whose methods its tasks call, and whether a loop runs in this thread.
 *
 * All private names of asyncio that C uses are in this file; those that Python uses are in ofipy/_completion/aio.py:
 *
 *   _asyncio_future_blocking   the attribute by which a task recognises a future
 *   _get_running_loop          as asyncio.get_running_loop, but without an exception
 *
 * A task calls get_loop(), add_done_callback(), cancel() and result() of what an await yields, which are public methods of
 * asyncio.Future. A cancelled task is resumed as any other; asyncio then raises CancelledError in the waiter, by throw().
 */
#include "await/await.h"

#include <structmember.h>

/* Set once, when the module is created. */
static PyTypeObject *waiter_type;

/* --------------------------------------------------------------------------------------------------------- running loop */

int await_loop_is_running(void)
{
    PyObject *name = PyUnicode_InternFromString("asyncio");
    /* Not imported for this question: as long as no other code has imported asyncio, no loop runs. */
    PyObject *asyncio = name ? PyImport_GetModule(name) : NULL;
    PyObject *loop = asyncio ? PyObject_CallMethod(asyncio, "_get_running_loop", NULL) : NULL;
    int running = loop ? loop != Py_None : PyErr_Occurred() ? -1 : 0;

    Py_XDECREF(loop);
    Py_XDECREF(asyncio);
    Py_XDECREF(name);
    return running;
}

PyObject *await_loop_query(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int running = await_loop_is_running();

    return running < 0 ? NULL : PyBool_FromLong(running);
}

/* ------------------------------------------------------------------------------------------------------- as an iterator */

PyObject *waiter_create(PyObject *request, bool ends_at_event)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(waiter_type, Py_tp_alloc);
    struct waiter *waiter = (struct waiter *)allocate(waiter_type, 0);

    if (!waiter)
        return NULL;
    Py_INCREF(request);
    waiter->request = (struct request *)request;
    waiter->ends_at_event = ends_at_event;
    return (PyObject *)waiter;
}

static PySendResult waiter_send(PyObject *self, PyObject *Py_UNUSED(value), PyObject **result)
{
    return waiter_resume((struct waiter *)self, result);
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

    if (waiter_resume((struct waiter *)self, &result) != PYGEN_RETURN)
        return result;
    raise_stop_iteration(result);
    Py_DECREF(result);
    return NULL;
}

static PyObject *send_to_waiter(PyObject *self, PyObject *Py_UNUSED(value)) { return waiter_next(self); }

static PyObject *fail_waiter(PyObject *self, PyObject *arguments)
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
    cancelled = waiter->base.queue ? PyObject_IsSubclass(kind, poller_of_waiter(waiter)->cancelled) : 0;
    is_done = cancelled == 0 || (cancelled > 0 && waiter_receive_cancel(waiter));
    waiter_end(waiter);
    if (is_done)
        PyErr_SetObject(kind, error == Py_None ? NULL : error);
    return NULL;
}

static PyObject *close_waiter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    waiter_end((struct waiter *)self);
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------------------------------------------- as a future */

static PyObject *get_waiter_loop(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *loop = poller_of_waiter((struct waiter *)self)->loop;

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

/* False: it is not cancelled as a future. The task is resumed, and then raises CancelledError in the waiter. */
static PyObject *cancel_waiter(PyObject *self, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    if (!request_waiter_resume((struct request_waiter *)self))
        return NULL;
    Py_RETURN_FALSE;
}

static PyObject *get_waiter_result(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored)) { Py_RETURN_NONE; }

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static int waiter_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct waiter *waiter = (struct waiter *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)waiter->request);
    Py_VISIT((PyObject *)waiter->base.queue);
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
    waiter_end(waiter);
    waiter_clear(self);
    Py_CLEAR(waiter->request);
    Py_CLEAR(waiter->base.queue);
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
    {"throw", fail_waiter, METH_VARARGS, NULL},
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

PyObject *waiter_type_create(PyObject *module)
{
    if (!waiter_init())
        return NULL;
    waiter_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &waiter_spec, NULL);
    return (PyObject *)waiter_type;
}
