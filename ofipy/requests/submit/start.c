/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting prepared requests, several with one call. */
#include "submit/submit.h"

#include <errno.h>

/* How many requests one call of the core starts. */
#define REQUESTS_PER_START 16

/* Raises TypeError unless all of them are prepared requests. */
static bool check_prepared_requests(PyObject *const *requests, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyObject_TypeCheck(requests[i], request_type) && ((struct request *)requests[i])->kind == PREPARED)
            continue;
        PyErr_Format(PyExc_TypeError, "a %R is no prepared request", Py_TYPE(requests[i]));
        return false;
    }
    return true;
}

/* How many of the first were started, or the core's error; `timeout` as prepared_start_some_doc says. */
static int start_first_requests(PyObject *const *requests, Py_ssize_t count, int64_t timeout)
{
    ofp_request_t handles[REQUESTS_PER_START];
    int result;

    count = count < REQUESTS_PER_START ? count : REQUESTS_PER_START;
    for (Py_ssize_t i = 0; i < count; i++)
        handles[i] = ((struct request *)requests[i])->handle;
    result = core.ofp_start_many(handles, (uint64_t)count, OFP_START_AT_ONCE, 0);
    /* Another thread is in the domain, or there is no space: wait without the GIL. */
    if (result == -ENOLCK || result == -EAGAIN) {
        Py_BEGIN_ALLOW_THREADS result = core.ofp_start_many(
            handles, (uint64_t)count, timeout < -1 ? OFP_START_BEYOND : 0, timeout < -1 ? 0 : timeout);
        Py_END_ALLOW_THREADS
    }
    OFP_CHECK(result <= count);
    for (int i = 0; i < result; i++)
        ((struct request *)requests[i])->has_result = 0;
    return result;
}

const char prepared_start_some_doc[] =
    "start_some(requests, nanoseconds) -> how many of the first 16 were started, or the core's "
    "error.\n-2 nanoseconds: what exceeds the transmit queue waits in the core.";
PyObject *prepared_start_some(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *list, *requests[REQUESTS_PER_START];
    long long timeout;
    Py_ssize_t count;

    if (!PyArg_ParseTuple(arguments, "O!L", &PyTuple_Type, &list, &timeout))
        return NULL;
    count = PyTuple_Size(list) < REQUESTS_PER_START ? PyTuple_Size(list) : REQUESTS_PER_START;
    for (Py_ssize_t i = 0; i < count; i++)
        requests[i] = PyTuple_GetItem(list, i);
    return check_prepared_requests(requests, count) ? PyLong_FromLong(start_first_requests(requests, count, timeout))
                                                    : NULL;
}

static bool warn_of_timeout(void)
{
    const char *text = "timeout= of start() only bounds the wait for room in a full transmit queue, and is called "
                       "room_timeout= now; .wait(timeout=) bounds the wait for the operations";

    return PyErr_WarnEx(PyExc_DeprecationWarning, text, 1) == 0;
}

/* The value of the one keyword, by its name or its former name; None if it was not given. NULL with an exception. */
static PyObject *find_room_timeout(PyObject *const *values, PyObject *names)
{
    PyObject *name;

    if (!names || PyTuple_Size(names) == 0)
        return Py_None;
    name = PyTuple_GetItem(names, 0);
    if (PyTuple_Size(names) == 1 && PyUnicode_CompareWithASCIIString(name, "room_timeout") == 0)
        return values[0];
    if (PyTuple_Size(names) == 1 && PyUnicode_CompareWithASCIIString(name, "timeout") == 0)
        return values[0] == Py_None || warn_of_timeout() ? values[0] : NULL;
    PyErr_SetString(PyExc_TypeError, "start() takes prepared requests and room_timeout=: seconds, or None for ever");
    return NULL;
}

/* Leave the rest to Python, which waits for space, or raises the error. */
static PyObject *call_start_all(PyObject *const *requests, Py_ssize_t count, PyObject *timeout)
{
    PyObject *rest = PyTuple_New(count), *result;

    if (!rest)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(requests[i]);
        PyTuple_SetItem(rest, i, requests[i]);
    }
    result = PyObject_CallFunctionObjArgs(submit_python.start_all, rest, timeout, NULL);
    Py_DECREF(rest);
    return result;
}

const char prepared_start_doc[] =
    "start(first, /, *others, room_timeout=None, timeout=None)\n--\n\n"
    "Start prepared operations, several with one call, in the order given.\n\n"
    "Parameters\n----------\n"
    "first, *others : PreparedRequest\n    Idle ones.\n"
    "room_timeout, timeout : float, optional\n    As of :meth:`PreparedRequest.start`.\n\n"
    "Raises\n------\n"
    "Busy\n    When one is running; those before it have been started.\n"
    "Again, TimedOut\n    When there was no room, as :meth:`PreparedRequest.start` says; those before have been started.\n"
    "Closed\n    When the endpoint of one is closed.\n";
PyObject *prepared_start(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *timeout = find_room_timeout(arguments + count, names);
    int started = 0;

    if (!timeout || !check_prepared_requests(arguments, count))
        return NULL;
    if (count == 0)
        return PyErr_Format(PyExc_TypeError, "start() of no prepared request");
    if (timeout == Py_None)
        started = start_first_requests(arguments, count, 0);
    if (started == count)
        Py_RETURN_NONE;
    started = started < 0 ? 0 : started;
    return call_start_all(arguments + started, count - started, timeout);
}
