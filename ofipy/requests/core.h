/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The base of every layer of this module: the core's functions, and helpers for the C API of Python.
 *
 * The extension is not linked against the core. cffi's module `_ofp` contains the core; Python passes the addresses of the
 * core's functions to bind() once, at import.
 *
 * "GIL:" in a comment, in all folders, marks what relies on the interpreter's lock. A free-threaded build has to replace each of
 * these places. Where the GIL is released, everything that the call needs is read from the objects before.
 */
#ifndef OFIPY_REQUESTS_CORE_H
#define OFIPY_REQUESTS_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "ofipy/check.h"
#include "ofipy/collective.h"
#include "ofipy/request.h"

/* The core's functions that are called here: result, name, parameters. */
#define OFIPY_CALLS(X)                                                                                                 \
    X(ofp_request_t, ofp_request_start, (struct ofp_endpoint *, const struct ofp_operation *, uint32_t, int64_t))      \
    X(int, ofp_request_finished, (ofp_request_t))                                                                      \
    X(int, ofp_request_take, (ofp_request_t, int64_t, struct ofp_completion *))                                        \
    X(int, ofp_request_take_finished, (ofp_request_t, struct ofp_completion *))                                        \
    X(int, ofp_request_take_at_once, (ofp_request_t, struct ofp_completion *))                                         \
    X(int, ofp_request_cancel, (ofp_request_t))                                                                        \
    X(int, ofp_request_claim, (ofp_request_t, uint32_t, uint64_t, uint64_t, struct ofp_completion *))                  \
    X(int, ofp_request_accept, (ofp_request_t, bool))                                                                  \
    X(int, ofp_request_discard, (ofp_request_t))                                                                       \
    X(int, ofp_request_unclaim, (ofp_request_t))                                                                       \
    X(int, ofp_request_notify, (ofp_request_t, bool))                                                                  \
    X(int, ofp_request_spin, (ofp_request_t, uint64_t))                                                                \
    X(int64_t, ofp_cq_finished, (struct ofp_cq *, ofp_request_t *, uint64_t))                                          \
    X(int64_t, ofp_cq_take_finished, (struct ofp_cq *, ofp_request_t *, uint64_t))                                     \
    X(int, ofp_cq_arm, (struct ofp_cq *))                                                                              \
    X(int, ofp_cq_arm_at_once, (struct ofp_cq *))                                                                      \
    X(int, ofp_cq_spin, (struct ofp_cq *const *, uint32_t, uint64_t))                                                  \
    X(int, ofp_request_abandon, (ofp_request_t, bool))                                                                 \
    X(ofp_request_t, ofp_reach_request, (struct ofp_endpoint *, uint32_t, uint64_t))                                   \
    X(ofp_request_t, ofp_prepare, (struct ofp_endpoint *, const struct ofp_operation *))                               \
    X(ofp_request_t, ofp_collective_start, (struct ofp_group *, const struct ofp_collective *, uint32_t, int64_t))     \
    X(uint64_t, ofp_reduction_size, (uint32_t, uint32_t))                                                              \
    X(ofp_request_t, ofp_collective_prepare, (struct ofp_group *, const struct ofp_collective *))                      \
    X(ofp_request_t, ofp_group_agree, (struct ofp_group *, uint64_t, uint32_t, struct ofp_agreement_result *))         \
    X(int, ofp_start_many, (const ofp_request_t *, uint64_t, uint32_t, int64_t))                                       \
    X(int, ofp_log_waiting, (void))

/* Written once by bind(), before any object of this module exists; constant afterwards, so reading needs no lock. */
struct core_calls {
#define OFIPY_POINTER(result, name, arguments) result(*name) arguments;
    OFIPY_CALLS(OFIPY_POINTER)
#undef OFIPY_POINTER
};
extern struct core_calls core;

/*
 * Each layer declares the objects of Python that it uses, as a list of names: LAYER_OBJECTS(X), and a struct with one pointer
 * for each name. They belong to the Python part of the same layer, or to one below it. bind() writes them once and owns the
 * references; they are constant afterwards.
 */
#define OFIPY_OBJECT_POINTER(name) PyObject *name;

/* Store a new reference to an object in place of an old one, or of NULL. GIL: two threads would release the old one twice. */
static inline void replace_object(PyObject **place, PyObject *object)
{
    PyObject *old = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(old);
}

/* The monotonic clock, in nanoseconds. */
static inline int64_t get_time_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
