/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of an object of the core, freed with the last reference to it.
 *
 * The garbage collector does not track this type, so it never ends one that is still referenced. The pointers of ffi.gc are
 * tracked: the collector finalizes such a pointer with all the garbage around it, in any order, whoever references it.
 */
#include "memory/memory.h"

struct core_memory {
    PyObject_HEAD PyObject *pointer; /* what `free_memory` is called with, once; owned */
    PyObject *free_memory;           /* a function of cffi's; owned */
};

static PyObject *core_memory_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *pointer, *free_memory;
    struct core_memory *memory;

    if (!PyArg_ParseTuple(arguments, "OO:CoreMemory", &pointer, &free_memory))
        return NULL;
    memory = (struct core_memory *)allocate(type, 0);
    if (!memory)
        return NULL;
    replace_object(&memory->pointer, pointer);
    replace_object(&memory->free_memory, free_memory);
    return (PyObject *)memory;
}

static void core_memory_dealloc(PyObject *self)
{
    struct core_memory *memory = (struct core_memory *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *kind, *error, *trace, *result;

    /* The last reference may go while an exception is being raised. */
    PyErr_Fetch(&kind, &error, &trace);
    result = PyObject_CallFunctionObjArgs(memory->free_memory, memory->pointer, NULL);
    if (!result)
        PyErr_WriteUnraisable(memory->free_memory);
    Py_XDECREF(result);
    PyErr_Restore(kind, error, trace);
    Py_DECREF(memory->pointer);
    Py_DECREF(memory->free_memory);
    release(self);
    Py_DECREF(type);
}

/* A pointer of ffi.gc keeps its destructor, so this is one. It is in C: a handler of a signal cannot run in it. */
static PyObject *ignore_call(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    Py_RETURN_NONE;
}

static PyType_Slot core_memory_slots[] = {
    {Py_tp_doc,
     (void *)"CoreMemory(pointer, free): calls free(pointer) when the last reference to it goes. A call does nothing."},
    {Py_tp_new, core_memory_new},
    {Py_tp_dealloc, core_memory_dealloc},
    {Py_tp_call, ignore_call},
    {0},
};

static PyType_Spec core_memory_spec = {
    .name = "ofipy._requests.CoreMemory",
    .basicsize = sizeof(struct core_memory),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = core_memory_slots,
};

PyObject *core_memory_type_create(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &core_memory_spec, NULL);
}
