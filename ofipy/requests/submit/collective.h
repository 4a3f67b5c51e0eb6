/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of a group that begin in C.
 *
 *   collective_method.c  the methods of groups: arguments, and who gives and gets what
 *   plain_collective.c   memory of a call with plain arguments, and its start
 *   group_place.c        a member's place in its group
 */
#ifndef OFIPY_REQUESTS_COLLECTIVE_H
#define OFIPY_REQUESTS_COLLECTIVE_H

#include "submit/submit.h"

/*
 * The place of this process in a group that has its members. GIL: guards every member; none changes after the creation.
 * `group` is read under the GIL and may be used after its release: the object in Python that has the place keeps the memory,
 * and the core refuses calls of a group that was closed.
 */
struct group_place {
    PyObject_HEAD PyObject *request_type; /* owned, as all objects here */
    PyObject *poster;                     /* of the endpoint; a struct poster */
    PyObject *endpoint;
    struct ofp_group *group;
    uint32_t rank, size;
};

extern PyTypeObject *group_place_type;
PyObject *group_place_type_create(PyObject *module);

/* A call with plain arguments; its objects are borrowed. */
struct plain_call {
    uint32_t kind, root;
    uint32_t op;                           /* of a reduction */
    bool reduces;                          /* the kind is a reduction */
    bool is_written;                       /* this member gets something in `target` */
    PyObject *source, *target;             /* buffers, or None; the same object: in place */
    uint64_t source_blocks, target_blocks; /* how many blocks a buffer consists of; 1: a vector, or a block */
    PyObject *returned;                    /* by wait() */
};

/* A request; None: nothing was started, and the general function does it, or says what is wrong; NULL with an exception. */
PyObject *plain_collective_start(struct group_place *place, PyObject *group, PyObject *method,
                                 const struct plain_call *plain);

extern const char collective_method_create_doc[];
PyObject *collective_method_create(PyObject *module, PyObject *arguments);

#endif
