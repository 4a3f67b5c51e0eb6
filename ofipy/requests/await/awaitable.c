/* SPDX-License-Identifier: BSD-3-Clause */
/* The base of the program's requests: a request that can be awaited. */
#include "await/await.h"

static PyObject *create_await_iterator(PyObject *request) { return waiter_create(request, false); }

static PyObject *create_event_waiter(PyObject *request, PyObject *Py_UNUSED(ignored))
{
    return waiter_create(request, true);
}

static PyMethodDef awaitable_methods[] = {
    {"_news", create_event_waiter, METH_NOARGS, "To be awaited: ends at the next event of the request."},
    {0},
};

static PyType_Slot awaitable_slots[] = {
    {Py_tp_doc, (void *)"The part of a request that is C."},
    {Py_tp_methods, awaitable_methods},
    {Py_am_await, create_await_iterator},
    {0},
};

/* Nothing is added to the object, so its traversal and its end are those of the base. */
static PyType_Spec awaitable_spec = {
    .name = "ofipy._requests.RequestBase",
    .basicsize = sizeof(struct request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = awaitable_slots,
};

PyObject *awaitable_type_create(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &awaitable_spec, (PyObject *)request_type);
}
