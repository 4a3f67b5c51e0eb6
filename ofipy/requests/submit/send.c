/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods tsend and send. Plain arguments (buffer, peer, tag) are passed to the core from here; all others are passed on to
 * the general function in Python, which knows every argument.
 *
 * There is no such method for receives: Python may run a signal handler after a call of C, before the caller has the request,
 * and a receive without a request must not stay posted.
 */
#include "submit/submit.h"

/* GIL: guards the table and the names below, which are written when classes are created. */
struct sender {
    PyMethodDef method;
    uint16_t op;
    struct general_function general;
};

static PyObject *send_tagged(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
static PyObject *send_untagged(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);

#define METHOD(name, function) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, NULL}
static struct sender senders[] = {
    {.method = METHOD("tsend", send_tagged), .op = OFP_TSEND},
    {.method = METHOD("send", send_untagged), .op = OFP_SEND},
};

static PyObject *name_poster, *name_peer, *name_tag; /* interned, so that pointers can be compared; owned */

/* Find the plain arguments; false if there are others. */
static bool parse_plain_arguments(uint16_t op, PyObject *const *arguments, Py_ssize_t count, PyObject *names,
                                  PyObject **peer, PyObject **tag)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;

    if (count < 1 || count > 2)
        return false;
    *peer = count == 2 ? arguments[1] : Py_None;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);

        if (name == name_tag && op == OFP_TSEND)
            *tag = arguments[count + i];
        else if (name == name_peer && count == 1)
            *peer = arguments[count + i];
        else
            return false;
    }
    return true;
}

/* A request, or None for the general function; NULL with an exception. */
static PyObject *send_plain_message(const struct sender *sender, PyObject *self, PyObject *buffer, PyObject *peer,
                                    PyObject *tag)
{
    struct ofp_operation op = {.op = sender->op, .peer = OFP_PEER_UNKNOWN};
    PyObject *poster = PyObject_GetAttr(self, name_poster), *result;

    if (!poster)
        return NULL;
    if (Py_TYPE(poster) == poster_type && poster_arguments_convert((struct poster *)poster, peer, tag, &op)) {
        result = poster_buffer_post((struct poster *)poster, self, buffer, &op);
    } else {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    Py_DECREF(poster);
    return result;
}

static PyObject *send_message(const struct sender *sender, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *names)
{
    PyObject *peer, *tag = NULL, *result;

    if (parse_plain_arguments(sender->op, arguments, count, names, &peer, &tag)) {
        result = send_plain_message(sender, self, arguments[0], peer, tag);
        if (result != Py_None)
            return result;
        Py_DECREF(result);
    }
    return general_function_call(sender->general.function, self, arguments, count, names);
}

static PyObject *send_tagged(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return send_message(&senders[0], self, arguments, count, names);
}

static PyObject *send_untagged(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return send_message(&senders[1], self, arguments, count, names);
}

static bool create_names(void)
{
    if (name_tag)
        return true;
    return (name_poster = PyUnicode_InternFromString("_poster")) && (name_peer = PyUnicode_InternFromString("peer")) &&
           (name_tag = PyUnicode_InternFromString("tag"));
}

const char sender_method_create_doc[] =
    "sender(class, op, function, text) -> method of the class that sends, for an op of TSEND or SEND; `function` takes what is not "
    "plain, `text` is the method's signature and documentation";
PyObject *sender_method_create(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *function, *text;
    struct sender *sender = senders;
    int op;

    if (!PyArg_ParseTuple(arguments, "O!iOU", &PyType_Type, &type, &op, &function, &text) || !create_names())
        return NULL;
    while (sender->op != op)
        if (++sender == senders + sizeof(senders) / sizeof(*senders))
            return PyErr_Format(PyExc_ValueError, "no operation that sends: %d", op);
    return general_method_create((PyTypeObject *)type, &sender->method, &sender->general, function, text);
}
