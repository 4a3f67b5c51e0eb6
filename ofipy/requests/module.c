/* SPDX-License-Identifier: BSD-3-Clause */
/* The module ofipy._requests: its functions, its types, and what Python passes to bind(). Uses all layers. */
#include "await/await.h"
#include "lock/lock.h"
#include "memory/memory.h"
#include "request/request.h"
#include "submit/collective.h"
#include "submit/submit.h"

PyDoc_STRVAR(
    bind_functions_doc,
    "bind(addresses of CALLS, OBJECTS): the functions of the core, and the objects of Python, that are used here");
static PyObject *bind_functions(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *addresses, *objects;
    Py_ssize_t i = 0;

    if (!PyArg_ParseTuple(arguments, "O!O!", &PyTuple_Type, &addresses, &PyTuple_Type, &objects))
        return NULL;
#define OFIPY_SET_CALL(result, name, parameters)                                                                       \
    core.name = (result(*) parameters)PyLong_AsVoidPtr(PyTuple_GetItem(addresses, i++));                               \
    if (!core.name)                                                                                                    \
        return NULL;
    OFIPY_CALLS(OFIPY_SET_CALL)
    i = 0;
#define OFIPY_SET_OBJECT(layer, name)                                                                                  \
    if (i >= PyTuple_Size(objects))                                                                                    \
        return PyErr_Format(PyExc_TypeError, "fewer objects than OBJECTS");                                            \
    replace_object(&layer##_python.name, PyTuple_GetItem(objects, i++));
#define OFIPY_SET_MEMORY_OBJECT(name) OFIPY_SET_OBJECT(memory, name)
#define OFIPY_SET_REQUEST_OBJECT(name) OFIPY_SET_OBJECT(request, name)
#define OFIPY_SET_AWAIT_OBJECT(name) OFIPY_SET_OBJECT(await, name)
#define OFIPY_SET_SUBMIT_OBJECT(name) OFIPY_SET_OBJECT(submit, name)
    MEMORY_OBJECTS(OFIPY_SET_MEMORY_OBJECT)
    REQUEST_OBJECTS(OFIPY_SET_REQUEST_OBJECT)
    AWAIT_OBJECTS(OFIPY_SET_AWAIT_OBJECT)
    SUBMIT_OBJECTS(OFIPY_SET_SUBMIT_OBJECT)
    Py_RETURN_NONE;
}

static int add_name_lists(PyObject *module)
{
#define OFIPY_CALL_NAME(result, name, parameters) #name,
    static const char *const calls[] = {OFIPY_CALLS(OFIPY_CALL_NAME) NULL};
#define OFIPY_OBJECT_NAME(name) #name,
    static const char *const objects[] = {MEMORY_OBJECTS(OFIPY_OBJECT_NAME) REQUEST_OBJECTS(OFIPY_OBJECT_NAME)
                                              AWAIT_OBJECTS(OFIPY_OBJECT_NAME) SUBMIT_OBJECTS(OFIPY_OBJECT_NAME) NULL};
    const char *const *const lists[] = {calls, objects};
    const char *const names[] = {"CALLS", "OBJECTS"};

    for (int which = 0; which < 2; which++) {
        PyObject *list = PyList_New(0);

        for (const char *const *name = lists[which]; list && *name; name++) {
            PyObject *text = PyUnicode_FromString(*name);

            if (!text || PyList_Append(list, text) != 0)
                Py_CLEAR(list);
            Py_XDECREF(text);
        }
        if (!list || PyModule_AddObjectRef(module, names[which], list) != 0)
            return -1;
        Py_DECREF(list);
    }
    return 0;
}

static PyMethodDef functions[] = {
    {"accessor", accessor_method_create, METH_VARARGS, accessor_method_create_doc},
    {"acquire_for_fork", fork_locks_acquire, METH_O, fork_locks_acquire_doc},
    {"bind", bind_functions, METH_VARARGS, bind_functions_doc},
    {"collective", collective_method_create, METH_VARARGS, collective_method_create_doc},
    {"loop_is_running", await_loop_query, METH_NOARGS, "Whether an event loop runs in this thread."},
    {"memory_freed", memory_frees_count, METH_NOARGS, memory_frees_count_doc},
    {"outcomes", request_outcomes_collect, METH_O, request_outcomes_collect_doc},
    {"release_after_fork", fork_locks_release, METH_NOARGS, fork_locks_release_doc},
    {"repair_after_fork", fork_locks_repair, METH_O, fork_locks_repair_doc},
    {"sender", sender_method_create, METH_VARARGS, sender_method_create_doc},
    {"start", (PyCFunction)(void (*)(void))prepared_start, METH_FASTCALL | METH_KEYWORDS, prepared_start_doc},
    {"start_some", prepared_start_some, METH_VARARGS, prepared_start_some_doc},
    {"updater", updater_method_create, METH_VARARGS, updater_method_create_doc},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ofipy._requests", .m_doc = "The objects of the request tier.",
    .m_size = -1,          .m_methods = functions,
};

static bool add_type(PyObject *module, PyObject *(*create)(PyObject *), const char *name)
{
    PyObject *type = create(module);
    int result = type ? PyModule_AddObjectRef(module, name, type) : -1;

    /* The reference of create() stays: C uses most types without the module. */
    return result == 0;
}

static bool add_module_types(PyObject *module)
{
    return add_type(module, request_type_create, "Waitable") &&
           add_type(module, awaitable_type_create, "RequestBase") && add_type(module, poster_type_create, "Poster") &&
           add_type(module, group_place_type_create, "Place") && add_type(module, waiter_type_create, "Waiter") &&
           add_type(module, poller_type_create, "PollerBase") && add_type(module, notifier_type_create, "Notices") &&
           add_type(module, hold_type_create, "Hold") && add_type(module, core_memory_type_create, "CoreMemory");
}

PyMODINIT_FUNC PyInit__requests(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module || !add_module_types(module) || PyModule_AddIntConstant(module, "PLAIN", PLAIN) != 0 ||
        PyModule_AddIntConstant(module, "MESSAGE", MESSAGE) != 0 ||
        PyModule_AddIntConstant(module, "MANY", MANY) != 0 ||
        PyModule_AddIntConstant(module, "MISSES_ENOUGH", MISSES_ENOUGH) != 0 || add_name_lists(module) != 0)
        return NULL;
    return module;
}
