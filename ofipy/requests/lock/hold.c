/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The type of holds: `with Hold(lock):` acquires a lock of Python's for a block.
 *
 * A signal's handler may raise after a method has returned, and before the block has begun that releases the lock: after
 * `lock.acquire()`, in a method `__enter__` of Python's, and since Python 3.14 in `with lock:` as well. The thread would keep
 * the lock for ever. A hold is deleted then, since only that statement refers to it, and releases the lock.
 */
#include "lock/lock.h"

/* Names of methods; owned, constant once the type is there. */
static PyObject *acquire_name, *release_name;

/* Owned by the statement that uses it. GIL: two threads would release twice. */
struct hold {
    PyObject_HEAD PyObject *lock; /* with acquire() and release() */
    bool is_blocking;
    bool has_lock; /* it is acquired, and not yet released */
};

static PyObject *hold_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "blocking", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct hold *hold;
    PyObject *lock;
    int is_blocking = 1;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$p", names, &lock, &is_blocking))
        return NULL;
    hold = (struct hold *)allocate(type, 0);
    if (!hold)
        return NULL;
    replace_object(&hold->lock, lock);
    hold->is_blocking = is_blocking;
    return (PyObject *)hold;
}

static PyObject *hold_enter(PyObject *self, PyObject *Py_UNUSED(arguments))
{
    struct hold *hold = (struct hold *)self;
    PyObject *answer;
    int acquired;

    if (hold->has_lock)
        return PyErr_Format(PyExc_RuntimeError, "a Hold is for one block");
    answer = PyObject_CallMethodObjArgs(hold->lock, acquire_name, hold->is_blocking ? NULL : Py_False, NULL);
    acquired = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (acquired < 0)
        return NULL;
    hold->has_lock = acquired;
    return PyBool_FromLong(acquired);
}

/* Release the lock if the hold has it: 0, or -1 with an exception. */
static int hold_end(struct hold *hold)
{
    PyObject *answer;

    if (!hold->has_lock)
        return 0;
    hold->has_lock = false;
    answer = PyObject_CallMethodObjArgs(hold->lock, release_name, NULL);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

static PyObject *hold_leave(PyObject *self, PyObject *Py_UNUSED(arguments))
{
    if (hold_end((struct hold *)self) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static void hold_dealloc(PyObject *self)
{
    struct hold *hold = (struct hold *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *kind, *error, *trace;

    PyErr_Fetch(&kind, &error, &trace);
    if (hold_end(hold) != 0)
        PyErr_WriteUnraisable(hold->lock);
    PyErr_Restore(kind, error, trace);
    Py_CLEAR(hold->lock);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef hold_methods[] = {
    {"__enter__", hold_enter, METH_NOARGS, "Acquire the lock: whether it is acquired."},
    {"__exit__", hold_leave, METH_VARARGS, "Release the lock if it is acquired."},
    {0},
};

static PyType_Slot hold_slots[] = {
    {Py_tp_doc,
     (void *)"Hold(lock, /, *, blocking=True): acquires a lock for a block, and releases it however that ends."},
    {Py_tp_new, hold_new},
    {Py_tp_methods, hold_methods},
    {Py_tp_dealloc, hold_dealloc},
    {0},
};

static PyType_Spec hold_spec = {
    .name = "ofipy._requests.Hold",
    .basicsize = sizeof(struct hold),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = hold_slots,
};

PyObject *hold_type_create(PyObject *module)
{
    acquire_name = PyUnicode_InternFromString("acquire");
    release_name = PyUnicode_InternFromString("release");
    return acquire_name && release_name ? PyType_FromModuleAndSpec(module, &hold_spec, NULL) : NULL;
}
