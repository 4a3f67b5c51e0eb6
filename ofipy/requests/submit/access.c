/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods write and read. Plain arguments (buffer, peer, a RemoteRegion, and perhaps a completion level) are passed to the
 * core from here; all others are passed on to the general function in Python, which knows every argument.
 */
#include "submit/submit.h"

/* GIL: guards the table and the names below, which are written when classes are created. */
struct accessor {
    PyMethodDef method;
    uint16_t op;
    unsigned long right; /* the remote region has to grant it */
    struct general_function general;
};

static PyObject *write_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
static PyObject *read_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);

#define METHOD(name, function) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, NULL}
static struct accessor accessors[] = {
    {.method = METHOD("write", write_remote), .op = OFP_WRITE, .right = OFP_ACCESS_REMOTE_WRITE},
    {.method = METHOD("read", read_remote), .op = OFP_READ, .right = OFP_ACCESS_REMOTE_READ},
};

static PyObject *name_poster, *name_complete; /* interned, so that pointers can be compared; owned */

static bool parse_access_arguments(PyObject *const *arguments, Py_ssize_t count, PyObject *names, uint64_t *flags)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;

    if (count != 3 || named > 1)
        return false;
    return !named || (PyTuple_GetItem(names, 0) == name_complete && remote_level_convert(arguments[3], flags));
}

/* A request, or None for the general function; NULL with an exception. */
static PyObject *post_access(const struct accessor *accessor, struct poster *poster, PyObject *self,
                             PyObject *const *arguments, uint64_t flags)
{
    const struct ofp_remote_segment *remote = remote_segment_find(arguments[2], accessor->right, 0);
    struct ofp_operation op = {.op = accessor->op, .flags = flags};
    struct buffer_reference reference = {0};

    if (!remote || !poster->pointer || !poster_peer_resolve(poster, arguments[1], &op.peer) ||
        !memory_operation_fill(&poster->finder, arguments[0], op.op == OFP_READ, &op, &reference))
        return poster_none_return();
    /* The general function raises the error. */
    if (op.length != remote->length) {
        buffer_reference_release(&reference);
        Py_RETURN_NONE;
    }
    op.remote_offset = remote->offset;
    op.remote_key = remote->key;
    return poster_error_discard(
        poster_operation_post(poster, self, request_python.Request, &op, -1, PLAIN, &reference));
}

static PyObject *start_plain_access(const struct accessor *accessor, PyObject *self, PyObject *const *arguments,
                                    Py_ssize_t count, PyObject *names)
{
    PyObject *poster, *result;
    uint64_t flags = 0;

    if (!parse_access_arguments(arguments, count, names, &flags))
        return poster_none_return();
    poster = PyObject_GetAttr(self, name_poster);
    if (!poster)
        return NULL;
    if (Py_TYPE(poster) == poster_type)
        result = post_access(accessor, (struct poster *)poster, self, arguments, flags);
    else
        result = poster_none_return();
    Py_DECREF(poster);
    return result;
}

static PyObject *start_access(const struct accessor *accessor, PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names)
{
    PyObject *result = start_plain_access(accessor, self, arguments, count, names);

    if (result != Py_None)
        return result;
    Py_DECREF(result);
    return general_function_call(accessor->general.function, self, arguments, count, names);
}

static PyObject *write_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return start_access(&accessors[0], self, arguments, count, names);
}

static PyObject *read_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return start_access(&accessors[1], self, arguments, count, names);
}

static bool create_attribute_names(void)
{
    if (name_complete)
        return true;
    return (name_poster = PyUnicode_InternFromString("_poster")) &&
           (name_complete = PyUnicode_InternFromString("complete"));
}

const char accessor_method_create_doc[] =
    "accessor(class, op, function, text) -> method of the class that accesses remote memory, for an op of WRITE or READ; `function` "
    "takes what is not plain, `text` is the method's signature and documentation";
PyObject *accessor_method_create(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *function, *text;
    struct accessor *accessor = accessors;
    int op;

    if (!PyArg_ParseTuple(arguments, "O!iOU", &PyType_Type, &type, &op, &function, &text) || !create_attribute_names())
        return NULL;
    while (accessor->op != op)
        if (++accessor == accessors + sizeof(accessors) / sizeof(*accessors))
            return PyErr_Format(PyExc_ValueError, "no operation that accesses remote memory: %d", op);
    return general_method_create((PyTypeObject *)type, &accessor->method, &accessor->general, function, text);
}
