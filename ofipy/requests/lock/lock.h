/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of Python's that are taken for a block. */
#ifndef OFIPY_REQUESTS_LOCK_H
#define OFIPY_REQUESTS_LOCK_H

#include "core.h"

/* Create the type of holds. */
PyObject *hold_type_create(PyObject *module);

#endif
