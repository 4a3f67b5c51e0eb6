/* SPDX-License-Identifier: BSD-3-Clause */
/* The general functions of methods that begin in C. */
#include "submit/submit.h"

PyObject *general_function_call(PyObject *function, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *names)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *positional = PyTuple_New(1 + count), *keywords = PyDict_New(), *result = NULL;
    bool ready = positional && keywords;

    for (Py_ssize_t i = 0; ready && i <= count; i++) {
        PyObject *argument = i ? arguments[i - 1] : self;

        Py_INCREF(argument);
        ready = PyTuple_SetItem(positional, i, argument) == 0;
    }
    for (Py_ssize_t i = 0; ready && i < named; i++)
        ready = PyDict_SetItem(keywords, PyTuple_GetItem(names, i), arguments[count + i]) == 0;
    if (ready)
        result = PyObject_Call(function, positional, keywords);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

PyObject *general_method_create(PyTypeObject *type, PyMethodDef *method, struct general_function *general,
                                PyObject *function, PyObject *text)
{
    replace_object(&general->function, function);
    replace_object(&general->text, text);
    method->ml_doc = PyUnicode_AsUTF8AndSize(text, NULL);
    return method->ml_doc ? PyDescr_NewMethod(type, method) : NULL;
}
