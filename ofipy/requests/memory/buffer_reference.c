/* SPDX-License-Identifier: BSD-3-Clause */
#include "requests.h"

void buffer_reference_release(struct buffer_reference *reference)
{
    struct buffer_reference released = *reference;

    /* What runs in the object's end finds it gone. */
    *reference = (struct buffer_reference){0};
    if (released.view.obj)
        PyBuffer_Release(&released.view);
    Py_XDECREF(released.owner);
}
