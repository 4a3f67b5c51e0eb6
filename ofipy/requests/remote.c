/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting operations on the memory of peers. As in poster.c: None where the arguments are not the plain ones. */
#include "memory.h"
#include "requests.h"

/* The peer, and the memory there: (…, peer, address of a struct ofp_remote_segment, flags). */
static const struct ofp_remote_segment *to_remote(struct poster *poster, PyObject *const *arguments,
                                                  struct ofp_operation *op)
{
    const struct ofp_remote_segment *remote = PyLong_AsVoidPtr(arguments[1]);

    if (!remote || !poster->pointer || !poster_peer(poster, arguments[0], &op->peer))
        return NULL;
    op->remote_offset = remote->offset;
    op->remote_key = remote->key;
    op->flags = PyLong_AsUnsignedLongLong(arguments[2]);
    return remote;
}

static PyObject *none_unless_raised(void)
{
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

const char poster_rma_doc[] =
    "rma(endpoint, op, buffer, peer, address of a struct ofp_remote_segment, flags) -> Request or None";
PyObject *poster_rma(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    const struct ofp_remote_segment *remote = NULL;
    struct ofp_operation op = {0};
    struct ofp_segment segment;
    struct hold hold = {0};

    if (count == 6) {
        op.op = (uint16_t)PyLong_AsLong(arguments[1]);
        remote = to_remote(poster, arguments + 3, &op);
    }
    if (!remote || !memory_describe(poster, arguments[2], op.op == OFP_READ, &segment, &hold))
        return none_unless_raised();
    /* The general way says what is wrong. */
    if (segment.length != remote->length) {
        hold_release(&hold);
        Py_RETURN_NONE;
    }
    op.offset = segment.offset;
    op.length = segment.length;
    op.region = segment.region;
    return poster_plain(poster_post(poster, arguments[0], hooks.Request, &op, -1, PLAIN, &hold));
}

/* ------------------------------------------------------------------------------------------------------------- atomics */

/* Arrays of one atomic operation; new references, NULL where it has none. */
struct operands {
    PyObject *value, *compare, *fetched;
};

static void operands_release(struct operands *operands)
{
    Py_XDECREF(operands->value);
    Py_XDECREF(operands->compare);
    Py_XDECREF(operands->fetched);
}

static bool to_atomic_op(PyObject *what, uint8_t *number)
{
    PyObject *found = NULL;

    /* A plain number is no operation, though members of AtomicOp equal theirs. */
    if (PyUnicode_CheckExact(what) || (PyObject *)Py_TYPE(what) == hooks.AtomicOp)
        found = PyDict_GetItemWithError(hooks.ATOMIC_OPS, what);
    if (!found)
        return false;
    *number = (uint8_t)PyLong_AsLong(found);
    return true;
}

/* Arrays alike, and a new one for the old values where `into` is None. */
static bool to_operands(struct ofp_operation *op, PyObject *value, PyObject *compare, PyObject *into,
                        struct operands *operands)
{
    operands->value = memory_elements(value, &op->datatype);
    if (!operands->value)
        return false;
    if (op->op == OFP_COMPARE_ATOMIC) {
        uint8_t datatype;

        operands->compare = memory_elements(compare, &datatype);
        if (!operands->compare || !memory_is_alike(operands->compare, operands->value))
            return false;
    }
    if (op->op == OFP_ATOMIC)
        return true;
    if (into == Py_None) {
        operands->fetched = memory_new_like(operands->value);
    } else if (memory_is_alike(into, operands->value)) {
        Py_INCREF(into);
        operands->fetched = into;
    }
    return operands->fetched != NULL;
}

/* Where an operand lies; who keeps it is the tuple of all. */
static bool describe(struct poster *poster, PyObject *array, bool writable, struct ofp_segment *segment)
{
    struct hold hold = {0};

    if (!memory_describe(poster, array, writable, segment, &hold))
        return false;
    hold_release(&hold);
    return true;
}

static bool describe_all(struct poster *poster, const struct operands *operands, struct ofp_operation *op)
{
    struct ofp_segment segment;

    if (!describe(poster, operands->value, false, &segment))
        return false;
    op->offset = segment.offset;
    op->length = segment.length;
    op->region = segment.region;
    if (operands->compare) {
        if (!describe(poster, operands->compare, false, &segment))
            return false;
        op->compare_offset = segment.offset;
        op->compare_region = segment.region;
    }
    if (operands->fetched) {
        if (!describe(poster, operands->fetched, true, &segment))
            return false;
        op->result_offset = segment.offset;
        op->result_region = segment.region;
    }
    return true;
}

static PyObject *keep_all(const struct operands *operands)
{
    if (!operands->fetched) {
        Py_INCREF(operands->value);
        return operands->value;
    }
    return operands->compare ? PyTuple_Pack(3, operands->value, operands->fetched, operands->compare)
                             : PyTuple_Pack(2, operands->value, operands->fetched);
}

static PyObject *post_atomic(struct poster *poster, PyObject *endpoint, const struct operands *operands,
                             const struct ofp_operation *op)
{
    PyObject *type = operands->fetched ? hooks.FetchRequest : hooks.Request, *result;
    struct hold hold = {.keep = keep_all(operands)};

    if (!hold.keep)
        return NULL;
    result = poster_plain(poster_post(poster, endpoint, type, op, -1, PLAIN, &hold));
    if (operands->fetched && result && result != Py_None)
        replace_object(&((struct request *)result)->fetched, operands->fetched);
    return result;
}

const char poster_atomic_doc[] = "atomic(endpoint, code, value, compare, into, op, peer, address of a struct "
                                 "ofp_remote_segment, flags) -> Request or None";
PyObject *poster_atomic(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    const struct ofp_remote_segment *remote = NULL;
    struct operands operands = {0};
    struct ofp_operation op = {0};
    PyObject *result;

    if (count == 9 && to_atomic_op(arguments[5], &op.atomic_op)) {
        op.op = (uint16_t)PyLong_AsLong(arguments[1]);
        remote = to_remote(poster, arguments + 6, &op);
    }
    if (remote && to_operands(&op, arguments[2], arguments[3], arguments[4], &operands) &&
        describe_all(poster, &operands, &op) && op.length == remote->length)
        result = post_atomic(poster, arguments[0], &operands, &op);
    else
        result = none_unless_raised();
    operands_release(&operands);
    return result;
}
