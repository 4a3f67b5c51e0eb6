/* SPDX-License-Identifier: BSD-3-Clause */
/* From what a program passes as memory to a segment, for the kinds that most programs use; numpy is known here alone. */
#ifndef OFIPY_REQUESTS_MEMORY_H
#define OFIPY_REQUESTS_MEMORY_H

#include "requests.h"

int memory_import(void);

/*
 * Describe a bytes object, a bytearray, a contiguous numpy array of plain elements, or a Region of the poster's domain.
 * False: it is something else, or something is wrong with it (the general way finds out), and nothing is held.
 */
bool memory_describe(struct poster *poster, PyObject *buffer, bool writable, struct ofp_segment *segment,
                     struct hold *hold);

#endif
