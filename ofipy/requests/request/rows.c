/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a multi-receive buffer: completions that were read from the core and not by the program yet. */
#include "request/request.h"

struct request_row *request_row_reserve(void)
{
    struct request_row *row = PyMem_Malloc(sizeof(*row));

    if (!row)
        PyErr_NoMemory();
    return row;
}

int request_row_append(struct request *request, struct request_row *row)
{
    struct request_rows *rows = &request->rows;

    row->next = NULL;
    if (rows->last)
        rows->last->next = row;
    else
        rows->first = row;
    rows->last = row;
    rows->count++;
    if (row->completion.flags & OFP_COMPLETED_MULTI_RECV)
        return request_complete(request);
    request_waiters_notify(request);
    return FINISHED;
}

static struct request_row *remove_first_row(struct request_rows *rows)
{
    struct request_row *row = rows->first;

    rows->first = row->next;
    if (!rows->first)
        rows->last = NULL;
    rows->count--;
    return row;
}

static void insert_first_row(struct request_rows *rows, struct request_row *row)
{
    row->next = rows->first;
    rows->first = row;
    if (!rows->last)
        rows->last = row;
    rows->count++;
}

void request_rows_free(struct request *request)
{
    while (request->rows.count)
        PyMem_Free(remove_first_row(&request->rows));
}

PyObject *request_rows_count(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(((struct request *)self)->rows.count);
}

/* Whether the exception that is set is what the row says. Otherwise the program, or the interpreter, was interrupted. */
static bool is_error_of_row(void)
{
    PyObject *kind = PyErr_Occurred();

    return kind && PyErr_GivenExceptionMatches(kind, PyExc_Exception) && kind != PyExc_MemoryError &&
           kind != PyExc_RecursionError;
}

/*
 * The next message of a multi-receive buffer, which `_made` builds from a row; None: there is none. It is an attribute, since
 * Python runs no signal handler between reading an attribute and returning it: no message is lost on the way to the program.
 */
PyObject *request_row_pop(PyObject *self, void *Py_UNUSED(closure))
{
    struct request_rows *rows = &((struct request *)self)->rows;
    struct request_row *row;
    PyObject *bytes, *message = NULL;

    if (!rows->count)
        Py_RETURN_NONE;
    row = remove_first_row(rows);
    bytes = PyBytes_FromStringAndSize((const char *)&row->completion, sizeof(row->completion));
    if (bytes)
        message = PyObject_CallMethod(self, "_made", "(O)", bytes);
    Py_XDECREF(bytes);
    /* If the message could not be built, the row becomes the next one again. */
    if (message || is_error_of_row())
        PyMem_Free(row);
    else
        insert_first_row(rows, row);
    return message;
}
