/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods atomic, fetch_atomic and compare_atomic. Plain arguments (arrays or scalars of one dtype, peer, a RemoteRegion, the
 * operation, and perhaps a completion level or an array for the old values) are passed to the core from here; all others are
 * passed on to the general function in Python, which knows every argument.
 */
#include "submit/submit.h"

/* GIL: guards the table and the names below, which are written when classes are created. */
struct updater {
    PyMethodDef method;
    uint16_t op;
    unsigned long rights; /* the remote region has to grant them */
    struct general_function general;
};

static PyObject *update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
static PyObject *fetch_and_update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
static PyObject *compare_and_update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                           PyObject *names);

#define BOTH (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE)
#define METHOD(name, function) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, NULL}
static struct updater updaters[] = {
    {.method = METHOD("atomic", update_remote), .op = OFP_ATOMIC, .rights = OFP_ACCESS_REMOTE_WRITE},
    {.method = METHOD("fetch_atomic", fetch_and_update_remote), .op = OFP_FETCH_ATOMIC, .rights = BOTH},
    {.method = METHOD("compare_atomic", compare_and_update_remote), .op = OFP_COMPARE_ATOMIC, .rights = BOTH},
};

/* Interned, so that pointers can be compared; owned. */
static PyObject *name_poster, *name_op, *name_complete, *name_into, *default_op;

/* --------------------------------------------------------------------------------------------------------- operands */

/* Arrays of one atomic operation; new references, NULL where it has none. */
struct operands {
    PyObject *value, *compare, *fetched;
};

static void release_operands(struct operands *operands)
{
    Py_XDECREF(operands->value);
    Py_XDECREF(operands->compare);
    Py_XDECREF(operands->fetched);
}

static bool convert_atomic_op(PyObject *what, uint8_t *number)
{
    PyObject *found = NULL;

    /* A plain number is refused, although the members of AtomicOp are equal to their numbers. */
    if (PyUnicode_CheckExact(what) || (PyObject *)Py_TYPE(what) == submit_python.AtomicOp)
        found = PyDict_GetItemWithError(submit_python.ATOMIC_OPS, what);
    if (!found)
        return false;
    *number = (uint8_t)PyLong_AsLong(found);
    return true;
}

/* Arrays of the same type and size, and a new one for the old values if `into` is None. */
static bool build_operands(struct ofp_operation *op, PyObject *value, PyObject *compare, PyObject *into,
                           struct operands *operands)
{
    operands->value = memory_operand_create(value, &op->datatype);
    if (!operands->value)
        return false;
    if (op->op == OFP_COMPARE_ATOMIC) {
        uint8_t datatype;

        operands->compare = memory_operand_create(compare, &datatype);
        if (!operands->compare || !memory_is_alike(operands->compare, operands->value))
            return false;
    }
    if (op->op == OFP_ATOMIC)
        return true;
    if (into == Py_None) {
        operands->fetched = memory_array_create(operands->value);
    } else if (memory_is_alike(into, operands->value)) {
        Py_INCREF(into);
        operands->fetched = into;
    }
    return operands->fetched != NULL;
}

/* The address of an operand. It is kept alive by the tuple of all operands: retain_operands(). */
static bool fill_operand_segment(struct poster *poster, PyObject *array, bool writable, struct ofp_segment *segment)
{
    struct buffer_reference reference = {0};

    if (!memory_segment_fill(&poster->finder, array, writable, segment, &reference))
        return false;
    buffer_reference_release(&reference);
    return true;
}

static bool fill_operand_fields(struct poster *poster, const struct operands *operands, struct ofp_operation *op)
{
    struct ofp_segment segment;

    if (!fill_operand_segment(poster, operands->value, false, &segment))
        return false;
    op->offset = segment.offset;
    op->length = segment.length;
    op->region = segment.region;
    if (operands->compare) {
        if (!fill_operand_segment(poster, operands->compare, false, &segment))
            return false;
        op->compare_offset = segment.offset;
        op->compare_region = segment.region;
    }
    if (operands->fetched) {
        if (!fill_operand_segment(poster, operands->fetched, true, &segment))
            return false;
        op->result_offset = segment.offset;
        op->result_region = segment.region;
    }
    return true;
}

static PyObject *retain_operands(const struct operands *operands)
{
    if (!operands->fetched) {
        Py_INCREF(operands->value);
        return operands->value;
    }
    return operands->compare ? PyTuple_Pack(3, operands->value, operands->fetched, operands->compare)
                             : PyTuple_Pack(2, operands->value, operands->fetched);
}

static PyObject *post_operands(struct poster *poster, PyObject *endpoint, const struct operands *operands,
                               const struct ofp_operation *op)
{
    PyObject *type = operands->fetched ? submit_python.FetchRequest : request_python.Request, *result;
    struct buffer_reference reference = {.owner = retain_operands(operands)};

    if (!reference.owner)
        return NULL;
    result = poster_error_discard(poster_operation_post(poster, endpoint, type, op, -1, PLAIN, &reference));
    if (operands->fetched && result && result != Py_None)
        replace_object(&((struct request *)result)->fetched, operands->fetched);
    return result;
}

/* ----------------------------------------------------------------------------------------------------------- methods */

/* The arguments of a call, borrowed. */
struct update_arguments {
    PyObject *value, *compare, *peer, *remote, *op, *into;
    uint64_t flags;
};

/* False: there are others. */
static bool parse_update_arguments(const struct updater *updater, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *names, struct update_arguments *parsed)
{
    bool compares = updater->op == OFP_COMPARE_ATOMIC;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;

    if (count != 3 + compares)
        return false;
    *parsed = (struct update_arguments){.value = arguments[0],
                                        .compare = compares ? arguments[1] : Py_None,
                                        .peer = arguments[1 + compares],
                                        .remote = arguments[2 + compares],
                                        .op = compares ? default_op : NULL,
                                        .into = Py_None};
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *argument = arguments[count + i];

        if (name == name_op)
            parsed->op = argument;
        else if (name == name_into && updater->op != OFP_ATOMIC)
            parsed->into = argument;
        else if (name != name_complete || updater->op != OFP_ATOMIC || !remote_level_convert(argument, &parsed->flags))
            return false;
    }
    return parsed->op != NULL;
}

/* A request, or None for the general function; NULL with an exception. */
static PyObject *post_update(const struct updater *updater, struct poster *poster, PyObject *self,
                             const struct update_arguments *parsed)
{
    /* The general function describes in full what a device executes. */
    const struct ofp_remote_segment *remote =
        remote_segment_find(parsed->remote, updater->rights, OFP_ACCESS_DEVICE_ATOMIC);
    struct ofp_operation op = {.op = updater->op, .flags = parsed->flags};
    struct operands operands = {0};
    PyObject *result;

    if (!remote || !poster->pointer || !convert_atomic_op(parsed->op, &op.atomic_op) ||
        !poster_peer_resolve(poster, parsed->peer, &op.peer))
        return poster_none_return();
    op.remote_offset = remote->offset;
    op.remote_key = remote->key;
    if (build_operands(&op, parsed->value, parsed->compare, parsed->into, &operands) &&
        fill_operand_fields(poster, &operands, &op) && op.length == remote->length)
        result = post_operands(poster, self, &operands, &op);
    else
        result = poster_none_return();
    release_operands(&operands);
    return result;
}

static PyObject *start_plain_update(const struct updater *updater, PyObject *self, PyObject *const *arguments,
                                    Py_ssize_t count, PyObject *names)
{
    struct update_arguments parsed;
    PyObject *poster, *result;

    if (!parse_update_arguments(updater, arguments, count, names, &parsed))
        return poster_none_return();
    poster = PyObject_GetAttr(self, name_poster);
    if (!poster)
        return NULL;
    if (Py_TYPE(poster) == poster_type)
        result = post_update(updater, (struct poster *)poster, self, &parsed);
    else
        result = poster_none_return();
    Py_DECREF(poster);
    return result;
}

static PyObject *start_update(const struct updater *updater, PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names)
{
    PyObject *result = start_plain_update(updater, self, arguments, count, names);

    if (result != Py_None)
        return result;
    Py_DECREF(result);
    return general_function_call(updater->general.function, self, arguments, count, names);
}

static PyObject *update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return start_update(&updaters[0], self, arguments, count, names);
}

static PyObject *fetch_and_update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return start_update(&updaters[1], self, arguments, count, names);
}

static PyObject *compare_and_update_remote(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                           PyObject *names)
{
    return start_update(&updaters[2], self, arguments, count, names);
}

static bool create_update_names(void)
{
    if (default_op)
        return true;
    return (name_poster = PyUnicode_InternFromString("_poster")) && (name_op = PyUnicode_InternFromString("op")) &&
           (name_complete = PyUnicode_InternFromString("complete")) &&
           (name_into = PyUnicode_InternFromString("into")) && (default_op = PyUnicode_InternFromString("cswap"));
}

const char updater_method_create_doc[] =
    "updater(class, op, function, text) -> method of the class that updates remote memory, for an op of ATOMIC, FETCH_ATOMIC or "
    "COMPARE_ATOMIC; `function` takes what is not plain, `text` is the method's signature and documentation";
PyObject *updater_method_create(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *function, *text;
    struct updater *updater = updaters;
    int op;

    if (!PyArg_ParseTuple(arguments, "O!iOU", &PyType_Type, &type, &op, &function, &text) || !create_update_names())
        return NULL;
    while (updater->op != op)
        if (++updater == updaters + sizeof(updaters) / sizeof(*updaters))
            return PyErr_Format(PyExc_ValueError, "no atomic operation: %d", op);
    return general_method_create((PyTypeObject *)type, &updater->method, &updater->general, function, text);
}
