/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hooks of fork for locks of Python's. They are in C, since a function of Python's may be interrupted before its first
 * instruction: a signal that arrives while the process forks is handled there, and the locks would stay held.
 */
#include "lock/lock.h"

#define PATIENCE 1.0 /* seconds for one lock; an import takes less */

/*
 * The locks that this thread has acquired for the forks that it is within, since a signal's handler may fork, too: None, then
 * the locks of one fork, and so on. NULL outside of a fork. Owned.
 */
static _Thread_local PyObject *held;

const char fork_locks_acquire_doc[] = "acquire_for_fork(locks): before a fork, acquire those that become free in time";
PyObject *fork_locks_acquire(PyObject *Py_UNUSED(module), PyObject *locks)
{
    if (!held && !(held = PyList_New(0)))
        return NULL;
    if (PyList_Append(held, Py_None) != 0)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(locks); i++) {
        PyObject *lock = PyList_GetItem(locks, i);
        Py_ssize_t place = PyList_Size(held);
        PyObject *answer;
        int acquired;

        /* Before it is acquired: there may be no memory for it. */
        if (PyList_Append(held, lock) != 0)
            return NULL;
        answer = PyObject_CallMethod(lock, "acquire", "id", true, PATIENCE);
        acquired = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (acquired <= 0)
            PyList_SetSlice(held, place, place + 1, NULL);
        if (acquired < 0) /* by a signal's handler: the others are released after the fork */
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Take the last object off a list that has some: a new reference. */
static PyObject *pop_last_object(PyObject *list)
{
    Py_ssize_t size = PyList_Size(list);
    PyObject *last = PyList_GetItem(list, size - 1);

    Py_INCREF(last);
    if (PyList_SetSlice(list, size - 1, size, NULL) != 0)
        Py_CLEAR(last);
    return last;
}

const char fork_locks_release_doc[] = "release_after_fork(): release what acquire_for_fork() has acquired";
PyObject *fork_locks_release(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    bool is_done = false;

    while (held && !is_done && PyList_Size(held) > 0) {
        PyObject *lock = pop_last_object(held);
        PyObject *answer;

        if (!lock)
            return NULL;
        is_done = lock == Py_None;
        answer = is_done ? NULL : PyObject_CallMethod(lock, "release", NULL);
        if (!answer && !is_done)
            PyErr_WriteUnraisable(lock);
        Py_XDECREF(answer);
        Py_DECREF(lock);
    }
    if (held && PyList_Size(held) == 0)
        Py_CLEAR(held);
    Py_RETURN_NONE;
}

/* Create a lock anew if a thread of the parent held it: 0, or -1 with an exception. */
static int repair_lock(PyObject *lock)
{
    PyObject *answer = PyObject_CallMethod(lock, "_is_owned", NULL);
    int is_owned = answer ? PyObject_IsTrue(answer) : -1;

    Py_XDECREF(answer);
    if (is_owned != 0)
        return is_owned < 0 ? -1 : 0;
    answer = PyObject_CallMethod(lock, "_at_fork_reinit", NULL);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

const char fork_locks_repair_doc[] =
    "repair_after_fork(locks): in the child, create those anew that other threads held, then release";
PyObject *fork_locks_repair(PyObject *module, PyObject *locks)
{
    for (Py_ssize_t i = 0; i < PyList_Size(locks); i++)
        if (repair_lock(PyList_GetItem(locks, i)) != 0)
            PyErr_WriteUnraisable(locks);
    return fork_locks_release(module, NULL);
}
