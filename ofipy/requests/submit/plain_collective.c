/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with plain arguments: buffers that memory_segment_fill knows, in one piece, and blocks of equal length. Python
 * describes all others. A short collective takes less time than its description in Python.
 */
#include "submit/collective.h"

#include <errno.h>

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
static bool count_elements(const struct sides *sides, bool reduces, struct ofp_collective *call)
{
    const struct side *side = sides->source.buffer != Py_None ? &sides->source : &sides->target;
    PyObject *operand;
    uint8_t datatype;
    uint64_t size;

    call->datatype = OFP_UINT8;
    call->count = side->segment.length / side->blocks;
    if (!reduces)
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

/* A call as the core takes it. */
struct described_call {
    struct ofp_collective call;
    struct buffer_reference reference; /* of both buffers */
    uint64_t bytes;                    /* of both buffers */
};

/* Fill in the memory of a call, and reference it. False, maybe with an exception: nothing is referenced. */
static bool describe_call(const struct group_place *place, const struct plain_call *plain,
                          struct described_call *described)
{
    struct sides sides = {.source = {.buffer = plain->source, .blocks = plain->source_blocks},
                          .target = {.buffer = plain->target, .blocks = plain->target_blocks}};
    struct ofp_collective *call = &described->call;

    call->kind = plain->kind;
    call->root = plain->root;
    call->atomic_op = plain->op;
    if (!fill_sides((struct poster *)place->poster, &sides, plain->is_written, place->rank) ||
        !count_elements(&sides, plain->reduces, call) || !build_reference(&sides, &described->reference)) {
        release_sides(&sides);
        return false;
    }
    call->source = sides.source.segment.offset;
    call->source_region = sides.source.segment.region;
    call->target = sides.target.segment.offset;
    call->target_region = sides.target.segment.region;
    described->bytes = sides.source.segment.length + sides.target.segment.length;
    return true;
}

/* Name the group and the method, for errors. */
static bool name_call(struct request *request, PyObject *group, PyObject *method)
{
    static PyObject *group_attribute, *name_attribute; /* interned; GIL: guards them */

    if (!name_attribute && !((group_attribute = PyUnicode_InternFromString("_group")) &&
                             (name_attribute = PyUnicode_InternFromString("_name"))))
        return false;
    return PyObject_SetAttr((PyObject *)request, group_attribute, group) == 0 &&
           PyObject_SetAttr((PyObject *)request, name_attribute, method) == 0;
}

/* Keep the GIL for a short call, as start_operation() in post.c does. */
static ofp_request_t start_described_call(const struct group_place *place, const struct described_call *described)
{
    ofp_request_t handle = -ENOLCK;

    if (described->bytes <= COPIED_WITH_GIL)
        handle = core.ofp_collective_start(place->group, &described->call, OFP_START_AT_ONCE, 0);
    if (handle == -ENOLCK) {
        Py_BEGIN_ALLOW_THREADS handle = core.ofp_collective_start(place->group, &described->call, 0, 0);
        Py_END_ALLOW_THREADS
    }
    return handle;
}

PyObject *plain_collective_start(struct group_place *place, PyObject *group, PyObject *method,
                                 const struct plain_call *plain)
{
    struct poster *poster = (struct poster *)place->poster;
    struct described_call described = {0};
    struct ofp_operation op = {.peer = OFP_PEER_UNKNOWN};
    struct request *request;
    ofp_request_t handle;

    if (!poster->pointer)
        Py_RETURN_NONE;
    if (!describe_call(place, plain, &described)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    request = request_allocate((PyTypeObject *)place->request_type);
    if (!request || !name_call(request, group, method)) {
        Py_XDECREF((PyObject *)request);
        buffer_reference_release(&described.reference);
        return NULL;
    }
    replace_object(&request->fetched, plain->returned);
    handle = start_described_call(place, &described);
    if (handle < 0) {
        /* Nothing was started. The general function in Python meets the error again, or waits for a place. */
        Py_DECREF((PyObject *)request);
        buffer_reference_release(&described.reference);
        Py_RETURN_NONE;
    }
    request_operation_attach(request, &poster->orphans, place->endpoint, handle, &op, &described.reference);
    request->kind = VALUE;
    request->is_delivered = 1;
    return (PyObject *)request;
}
