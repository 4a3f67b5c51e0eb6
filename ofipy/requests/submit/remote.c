/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on the memory of peers. None: the arguments are not plain; see submit.h. */
#include "submit/submit.h"

/* Convert three arguments: peer, address of a struct ofp_remote_segment, flags. NULL: they are not plain, or an exception. */
static const struct ofp_remote_segment *convert_remote(struct poster *poster, PyObject *const *arguments,
                                                       struct ofp_operation *op)
{
    const struct ofp_remote_segment *remote = PyLong_AsVoidPtr(arguments[1]);

    if (!remote || !poster->pointer || !poster_peer_resolve(poster, arguments[0], &op->peer))
        return NULL;
    op->remote_offset = remote->offset;
    op->remote_key = remote->key;
    op->flags = PyLong_AsUnsignedLongLong(arguments[2]);
    return remote;
}

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

const char poster_atomic_post_doc[] = "atomic(endpoint, code, value, compare, into, op, peer, address of a struct "
                                      "ofp_remote_segment, flags) -> Request or None";
PyObject *poster_atomic_post(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    const struct ofp_remote_segment *remote = NULL;
    struct operands operands = {0};
    struct ofp_operation op = {0};
    PyObject *result;

    if (count == 9 && convert_atomic_op(arguments[5], &op.atomic_op)) {
        op.op = (uint16_t)PyLong_AsLong(arguments[1]);
        remote = convert_remote(poster, arguments + 6, &op);
    }
    if (remote && build_operands(&op, arguments[2], arguments[3], arguments[4], &operands) &&
        fill_operand_fields(poster, &operands, &op) && op.length == remote->length)
        result = post_operands(poster, arguments[0], &operands, &op);
    else
        result = poster_none_return();
    release_operands(&operands);
    return result;
}
