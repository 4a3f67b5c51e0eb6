/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/memory.h"

struct memory_python memory_python;

void buffer_reference_release(struct buffer_reference *reference)
{
    struct buffer_reference released = *reference;

    /* Cleared first: releasing runs code of the program, which may come back here through the same owner. */
    *reference = (struct buffer_reference){0};
    if (released.view.obj)
        PyBuffer_Release(&released.view);
    Py_XDECREF(released.owner);
}
