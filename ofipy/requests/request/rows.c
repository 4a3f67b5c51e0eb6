/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a multi-receive buffer: completions that were read from the core and not by the program yet. */
#include "request/request.h"

int request_row_append(struct request *request, const struct ofp_completion *completion)
{
    PyObject *row = PyBytes_FromStringAndSize((const char *)completion, sizeof(*completion));
    int result = RAISED;

    if (row && !request->rows)
        request->rows = PyList_New(0);
    if (row && request->rows)
        result = PyList_Append(request->rows, row);
    Py_XDECREF(row);
    if (result != 0)
        return RAISED;
    if (completion->flags & OFP_COMPLETED_MULTI_RECV)
        return request_complete(request);
    request_waiters_notify(request);
    return FINISHED;
}

PyObject *request_rows_count(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *rows = ((struct request *)self)->rows;

    return PyLong_FromSsize_t(rows ? PyList_Size(rows) : 0);
}

/*
 * The next message of a multi-receive buffer, which `_made` builds from a row; None: there is none. It is an attribute, since
 * Python runs no signal handler between reading an attribute and returning it: no message is lost on the way to the program.
 */
PyObject *request_row_pop(PyObject *self, void *Py_UNUSED(closure))
{
    struct request *request = (struct request *)self;
    PyObject *row, *message;

    if (!request->rows || PyList_Size(request->rows) == 0)
        Py_RETURN_NONE;
    row = PyList_GetItem(request->rows, 0);
    Py_INCREF(row);
    PyList_SetSlice(request->rows, 0, 1, NULL);
    message = PyObject_CallMethod(self, "_made", "(O)", row);
    /* Interrupted while the message was built: the row becomes the next one again. */
    if (!message && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        PyObject *kind, *error, *trace;

        PyErr_Fetch(&kind, &error, &trace);
        PyList_Insert(request->rows, 0, row);
        PyErr_Restore(kind, error, trace);
    }
    Py_DECREF(row);
    return message;
}
