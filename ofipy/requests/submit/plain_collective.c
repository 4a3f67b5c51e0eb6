/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with plain arguments: buffers that memory_segment_fill knows, in one piece, and blocks of equal length. Python
 * describes all others. A short collective takes less time than its description in Python.
 */
#include "submit/submit.h"

/* Of poster_collective_start_plain. */
enum argument {
    TYPE,
    GROUP,
    ENDPOINT,
    ADDRESS, /* of the group in C */
    NAME,    /* of the method */
    KIND,
    SOURCE, /* a buffer, or None; the same object as `target`: in place */
    TARGET,
    IS_WRITTEN, /* the target is */
    OP,         /* of a reduction; otherwise -1 */
    ROOT,
    RETURNED, /* what wait() returns */
    SOURCE_BLOCKS,
    TARGET_BLOCKS, /* how many blocks the buffer consists of; 1: a vector, or a block */
    RANK,
    ARGUMENTS
};

/* One buffer of the call. */
struct side {
    PyObject *buffer; /* borrowed */
    struct ofp_segment segment;
    struct buffer_reference reference;
    uint64_t blocks;
};

struct sides {
    struct side source, target;
    bool in_place; /* both are one buffer; `target` has no reference then */
};

static void release_sides(struct sides *sides)
{
    buffer_reference_release(&sides->source.reference);
    buffer_reference_release(&sides->target.reference);
}

/* False, maybe with an exception: the caller releases what is referenced. */
static bool fill_side(struct poster *poster, struct side *side, bool is_written)
{
    uint64_t length;

    if (side->buffer == Py_None)
        return true;
    if (!memory_segment_fill(&poster->finder, side->buffer, is_written, &side->segment, &side->reference))
        return false;
    length = side->segment.length / side->blocks;
    /* A block is a whole number of elements. */
    return length * side->blocks == side->segment.length && length % memory_get_element_size(side->buffer) == 0;
}

/* In place, the buffer of one block is the own block of the other buffer. */
static void set_own_block(struct sides *sides, uint64_t rank)
{
    struct side *source = &sides->source, *target = &sides->target;
    struct side *block = source->blocks < target->blocks ? source : target;
    uint64_t blocks = source->blocks < target->blocks ? target->blocks : source->blocks;

    target->segment = source->segment;
    if (source->blocks == target->blocks)
        return;
    block->segment.length /= blocks;
    block->segment.offset += rank * block->segment.length;
}

static bool fill_sides(struct poster *poster, struct sides *sides, bool is_written, uint64_t rank)
{
    struct side *source = &sides->source, *target = &sides->target;

    sides->in_place = source->buffer == target->buffer && source->buffer != Py_None;
    if (sides->in_place) {
        struct side whole = *source;

        whole.blocks = source->blocks < target->blocks ? target->blocks : source->blocks;
        if (!fill_side(poster, &whole, is_written)) {
            source->reference = whole.reference;
            return false;
        }
        source->segment = whole.segment;
        source->reference = whole.reference;
        set_own_block(sides, rank);
        return true;
    }
    return fill_side(poster, source, false) && fill_side(poster, target, is_written) &&
           (source->buffer == Py_None || target->buffer == Py_None ||
            source->segment.length / source->blocks == target->segment.length / target->blocks);
}

/* The number of elements, and their type if they are reduced. */
static bool count_elements(const struct sides *sides, bool is_reduction, struct ofp_collective *call)
{
    const struct side *side = sides->source.buffer != Py_None ? &sides->source : &sides->target;
    PyObject *operand;
    uint8_t datatype;
    uint64_t size;

    call->datatype = OFP_UINT8;
    call->count = side->segment.length / side->blocks;
    if (!is_reduction)
        return true;
    operand = memory_operand_create(side->buffer, &datatype);
    size = operand ? core.ofp_reduction_size(call->atomic_op, datatype) : 0;
    Py_XDECREF(operand);
    if (!size)
        return false;
    call->datatype = datatype;
    call->count /= size;
    return true;
}

/* One reference for both buffers. Two exports of buffers do not fit one: such a call is not plain. */
static bool build_reference(struct sides *sides, struct buffer_reference *both)
{
    struct buffer_reference *source = &sides->source.reference, *target = &sides->target.reference;
    bool has_source = source->owner || source->view.obj, has_target = target->owner || target->view.obj;

    *both = has_source ? *source : *target;
    if (!has_source || !has_target)
        return true;
    *both = (struct buffer_reference){0};
    if (source->view.obj || target->view.obj)
        return false;
    both->owner = PyTuple_Pack(2, source->owner, target->owner);
    if (both->owner)
        release_sides(sides);
    return both->owner != NULL;
}

/* Fill in the memory of a call, and reference it. False, maybe with an exception: nothing is referenced. */
static bool describe_plain_call(struct poster *poster, PyObject *const *arguments, struct ofp_collective *call,
                                struct buffer_reference *both)
{
    struct sides sides = {.source = {.buffer = arguments[SOURCE]}, .target = {.buffer = arguments[TARGET]}};
    uint64_t rank = PyLong_AsUnsignedLong(arguments[RANK]);
    long op = PyLong_AsLong(arguments[OP]);

    sides.source.blocks = PyLong_AsUnsignedLong(arguments[SOURCE_BLOCKS]);
    sides.target.blocks = PyLong_AsUnsignedLong(arguments[TARGET_BLOCKS]);
    call->kind = (uint32_t)PyLong_AsLong(arguments[KIND]);
    call->root = (uint32_t)PyLong_AsUnsignedLong(arguments[ROOT]);
    call->atomic_op = op < 0 ? 0 : (uint32_t)op;
    if (PyErr_Occurred() || !sides.source.blocks || !sides.target.blocks)
        return false;
    if (!fill_sides(poster, &sides, arguments[IS_WRITTEN] == Py_True, rank) || !count_elements(&sides, op >= 0, call) ||
        !build_reference(&sides, both)) {
        release_sides(&sides);
        return false;
    }
    call->source = sides.source.segment.offset;
    call->source_region = sides.source.segment.region;
    call->target = sides.target.segment.offset;
    call->target_region = sides.target.segment.region;
    return true;
}

/* Name the group, the method and the value that wait() returns. */
static bool set_attributes(struct request *request, PyObject *const *arguments)
{
    static PyObject *group, *name, *value; /* interned; GIL: guards them */

    replace_object(&request->fetched, arguments[RETURNED]);
    if (!value && !((group = PyUnicode_InternFromString("_group")) && (name = PyUnicode_InternFromString("_name")) &&
                    (value = PyUnicode_InternFromString("_value"))))
        return false;
    return PyObject_SetAttr((PyObject *)request, group, arguments[GROUP]) == 0 &&
           PyObject_SetAttr((PyObject *)request, name, arguments[NAME]) == 0 &&
           PyObject_SetAttr((PyObject *)request, value, arguments[RETURNED]) == 0;
}

static ofp_request_t start_plain_call(PyObject *address, const struct ofp_collective *call)
{
    struct ofp_group *group = PyLong_AsVoidPtr(address);
    ofp_request_t handle;

    Py_BEGIN_ALLOW_THREADS handle = core.ofp_collective_start(group, call, 0);
    Py_END_ALLOW_THREADS return handle;
}

const char poster_collective_start_plain_doc[] =
    "plain_collective(type, group, endpoint, address, name, kind, source, target, is_written, op, root, value, source_blocks, "
    "target_blocks, rank) -> Request, or None";
PyObject *poster_collective_start_plain(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    struct ofp_collective call = {0};
    struct buffer_reference reference = {0};
    struct ofp_operation op = {.peer = OFP_PEER_UNKNOWN};
    struct request *request;
    ofp_request_t handle;

    if (count != ARGUMENTS || !poster->pointer)
        Py_RETURN_NONE;
    if (!describe_plain_call(poster, arguments, &call, &reference)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    request = request_allocate((PyTypeObject *)arguments[TYPE]);
    if (!request || !set_attributes(request, arguments)) {
        Py_XDECREF((PyObject *)request);
        buffer_reference_release(&reference);
        return NULL;
    }
    handle = start_plain_call(arguments[ADDRESS], &call);
    if (handle < 0) {
        /* Nothing was started. The general function in Python meets the error again, or waits for a place. */
        Py_DECREF((PyObject *)request);
        buffer_reference_release(&reference);
        Py_RETURN_NONE;
    }
    request_operation_attach(request, &poster->orphans, arguments[ENDPOINT], handle, &op, &reference);
    request->kind = VALUE;
    request->is_delivered = 1;
    return (PyObject *)request;
}
