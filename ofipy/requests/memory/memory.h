/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of operations: finding the address behind a Python object (segment.c, the only file that knows numpy), keeping
 * that object alive while the core uses its memory (buffer_reference.c), also after the request is gone (orphan.c). And the
 * memory of the core's own objects (core_memory.c).
 *
 * This layer knows the core, but neither requests nor posters.
 */
#ifndef OFIPY_REQUESTS_MEMORY_H
#define OFIPY_REQUESTS_MEMORY_H

#include "core.h"

#define MEMORY_OBJECTS(X) X(Region) /* the type, of ofipy._memory */

struct memory_python {
    MEMORY_OBJECTS(OFIPY_OBJECT_POINTER)
};
extern struct memory_python memory_python;

/*
 * Keeps the memory of one operation alive: a reference to a Python object, an export of a buffer, or both. All zero: it keeps
 * nothing. It has exactly one owner; passing one to a function that "adopts" it passes the ownership.
 *
 * GIL: guards the references. The memory itself is read and written by the core without the GIL.
 */
struct buffer_reference {
    PyObject *owner;
    Py_buffer view; /* view.obj is NULL without an export */
};
void buffer_reference_release(struct buffer_reference *reference);

/* The type of what frees the memory of a closed object of the core. */
PyObject *core_memory_type_create(PyObject *module);

/* ------------------------------------------------------------------------------------------------------------- orphans */

/* An operation that still runs although its request was deleted: its memory stays referenced until the operation ends. */
struct orphan {
    struct orphan *next;
    ofp_request_t handle;
    struct buffer_reference buffer;
    bool cancel; /* the core is asked to cancel the operation */
};

/*
 * Owns orphans. The first member of a poster, and all that requests know of one.
 *
 * GIL: guards every member. No member is read or written while the GIL is released, and functions that run code of the
 * program (releasing a buffer reference) do so when the list is complete again.
 */
struct orphan_owner {
    PyObject_HEAD struct orphan *first, **end; /* in the order in which they are checked; owned */
    uint64_t count;
    PyObject *successor; /* the orphan_owner that gets the orphans once this one is closed, owned; NULL: none */
};

/*
 * The request of this operation is gone: adopt its buffer reference. The memory is released at once if the core is done
 * with it, otherwise once the operation has ended.
 */
void orphan_owner_add(struct orphan_owner *orphans, ofp_request_t handle, bool cancel, struct buffer_reference *buffer);
/* Release the memory of operations that have ended: check all orphans, or the next few. */
void orphan_owner_reclaim(struct orphan_owner *orphans, bool all);
/* Close it. The successor gets the orphans; without one (NULL) the endpoint is closed, and the orphans are released. */
void orphan_owner_close(struct orphan_owner *orphans, struct orphan_owner *successor);

/* ------------------------------------------------------------------------------------------------------------ segments */

/*
 * The parts of one domain that segment.c uses, with the last answers. A member of a poster.
 *
 * GIL: guards every member, in particular pairs that have to match: last_region and its segment, found_address and its
 * segment. An answer is stored only after the call of Python that computed it has returned.
 */
struct segment_finder {
    PyObject *domain;            /* regions of other domains are refused; owned, as all objects here */
    PyObject *find_allocation;   /* (address, length) -> Allocation or None, in the memory of domain.empty */
    PyObject *allocation_starts; /* list: empty if the domain has no such memory */
    PyObject *find_owned; /* (array, address, length) -> (number, offset) or None: the region that owns the array */
    uint64_t owned_above; /* only arrays of more bytes than this can have one */

    PyObject *last_region; /* the last Region that was accepted; NULL: none */
    struct ofp_segment last_region_segment;
    uint64_t found_address; /* of the last array that was found by find_allocation; 0: none */
    struct ofp_segment found_segment;
    uint64_t found_at_free_count; /* valid only while the count of frees is this */
};

extern const char memory_frees_count_doc[];
PyObject *memory_frees_count(PyObject *module, PyObject *ignored);

/*
 * Fill in the segment of a bytes object, a bytearray, a contiguous numpy array of plain elements, or a Region of the domain,
 * and reference its memory. False without an exception: it is another object, or it is invalid; nothing is referenced then,
 * and the caller leaves the argument to the general function in Python, which raises the error.
 */
bool memory_segment_fill(struct segment_finder *finder, PyObject *buffer, bool writable, struct ofp_segment *segment,
                         struct buffer_reference *reference);
/* Fill in the layout of a numpy array of plain elements that has more pieces than a record has segments. False as above. */
bool memory_layout_fill(PyObject *buffer, bool writable, struct ofp_operation *op, struct buffer_reference *reference);

/* Fill in the memory of an operation: a segment, or a layout. False as above. */
static inline bool memory_operation_fill(struct segment_finder *finder, PyObject *buffer, bool writable,
                                         struct ofp_operation *op, struct buffer_reference *reference)
{
    struct ofp_segment segment;

    if (!memory_segment_fill(finder, buffer, writable, &segment, reference))
        return memory_layout_fill(buffer, writable, op, reference);
    op->offset = segment.offset;
    op->length = segment.length;
    op->region = segment.region;
    return true;
}

/* An array whose elements lie apart. The arrays have `rank` members. */
struct strided_memory {
    uint64_t address, length, element_size; /* bytes; length: of all elements, not 0 */
    int rank;
    const Py_ssize_t *shape, *strides;
};
/*
 * A bytes object that holds the struct ofp_layout of the array at its beginning. NULL, with or without an exception: as many
 * pieces fit a record's segments.
 */
PyObject *memory_layout_create(const struct strided_memory *memory);

/* Bytes of an element of an array; 1 of other memory. */
uint64_t memory_get_element_size(PyObject *buffer);

/*
 * Convert an operand of an atomic, a numpy array or scalar, to a contiguous array, and get its enum ofp_datatype; a new
 * reference. NULL, with or without an exception: it is another object, or there is no such datatype.
 */
PyObject *memory_operand_create(PyObject *value, uint8_t *datatype);
/* Whether it is an array, of no derived type, with elements of the same type and as many of them. */
bool memory_is_alike(PyObject *array, PyObject *other);
/* A new array of the same shape and type, with undefined content. */
PyObject *memory_array_create(PyObject *array);
/* The array itself, or its only element if it has no dimension; a new reference. */
PyObject *memory_result_get(PyObject *array);

#endif
