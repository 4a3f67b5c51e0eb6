/* SPDX-License-Identifier: BSD-3-Clause */
/* From what a program passes as memory to a segment, for the kinds that most programs use; numpy is known here alone. */
#ifndef OFIPY_REQUESTS_MEMORY_H
#define OFIPY_REQUESTS_MEMORY_H

#include "requests.h"

int memory_numpy_load(void);
extern const char memory_frees_count_doc[];
PyObject *memory_frees_count(PyObject *module, PyObject *ignored);

/*
 * Describe a bytes object, a bytearray, a contiguous numpy array of plain elements, or a Region of the poster's domain.
 * False: it is something else, or something is wrong with it (the general way finds out), and nothing is held.
 */
bool memory_segment_fill(struct poster *poster, PyObject *buffer, bool writable, struct ofp_segment *segment,
                         struct buffer_reference *reference);

/*
 * An operand of an atomic, a numpy array or scalar, as a contiguous array with its enum ofp_datatype; a new reference. NULL, with
 * or without an exception: it is something else, or there is no such datatype.
 */
PyObject *memory_operand_create(PyObject *value, uint8_t *datatype);
/* An array, nothing derived from it, with elements of the same type and as many. */
bool memory_is_alike(PyObject *array, PyObject *other);
/* A new array like one, with anything in it. */
PyObject *memory_array_create(PyObject *array);
/* The array itself, or its only element where it has no dimension; a new reference. */
PyObject *memory_result_get(PyObject *array);

#endif
