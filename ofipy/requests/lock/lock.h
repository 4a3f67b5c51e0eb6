/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of Python's: acquired for a block, and across fork. Nothing of Python's that could be interrupted lies between. */
#ifndef OFIPY_REQUESTS_LOCK_H
#define OFIPY_REQUESTS_LOCK_H

#include "core.h"

/* Create the type of holds. */
PyObject *hold_type_create(PyObject *module);

/* Functions of the module, for os.register_at_fork(). Lists of locks are those of ofipy/_base/process_lock.py. */
PyObject *fork_locks_acquire(PyObject *module, PyObject *locks);
PyObject *fork_locks_release(PyObject *module, PyObject *arguments);
PyObject *fork_locks_repair(PyObject *module, PyObject *locks);

extern const char fork_locks_acquire_doc[], fork_locks_release_doc[], fork_locks_repair_doc[];

#endif
