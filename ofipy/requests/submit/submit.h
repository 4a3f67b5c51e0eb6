/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting operations.
 *
 *   post.c      posting one operation, and waiting for space; the arguments of the plain methods
 *   send.c      tsend and send, the methods of every class that has a poster as `_poster`
 *   access.c    write and read, likewise
 *   update.c    atomic, fetch_atomic and compare_atomic, likewise
 *   remote.c    what access.c and update.c have in common
 *   record.c    operations that Python has described in full, as a record
 *   general.c   the general functions of methods that begin in C, for arguments that are not plain
 *   collective.c  collectives of a group that Python has described; collective.h: those that begin in C
 *   start.c     starting prepared requests
 *   poster.c    the type of posters
 *
 * The plain methods (tsend, send, trecv, write, read, atomic) know plain arguments: a buffer of a common kind, a peer of the right
 * vector or a number, and a tag that is a plain integer. For other arguments, and if the core refuses the operation, they
 * return None: nothing was started then, and the caller, a function in Python, does the work with all checks and raises the
 * errors.
 */
#ifndef OFIPY_REQUESTS_SUBMIT_H
#define OFIPY_REQUESTS_SUBMIT_H

#include "core.h"
#include "memory/memory.h"
#include "request/request.h"

#define SUBMIT_OBJECTS(X)                                                                                              \
    X(FetchRequest)   /* the type of what an atomic returns that fetches old values */                                 \
    X(AtomicOp)       /* the type */                                                                                   \
    X(ATOMIC_OPS)     /* dict: members and names of AtomicOp -> their numbers */                                       \
    X(RemoteRegion)   /* the type */                                                                                   \
    X(COMPLETE_FLAGS) /* dict: completion levels -> their flags */                                                     \
    X(start_all)      /* (prepared requests, timeout): start them as there is space, or raise */

struct submit_python {
    SUBMIT_OBJECTS(OFIPY_OBJECT_POINTER)
};
extern struct submit_python submit_python;

/*
 * The object with which an endpoint, an alias or a shared receive context posts.
 *
 * GIL: guards every member; last_peer and last_peer_number have to match. `pointer` is read under the GIL and may be used after
 * its release: the core refuses calls of an endpoint that was retired.
 */
struct poster {
    struct orphan_owner orphans;  /* the operations whose request is gone; all that requests know of a poster */
    struct ofp_endpoint *pointer; /* NULL once it is closed */
    PyObject *owner;  /* of the memory behind `pointer`: CoreMemory, in tuples; the collector clears neither */
    PyObject *vector; /* `_vector` of the peers that it accepts; owned, as all objects here */
    struct segment_finder finder;
    PyObject *last_peer; /* the last Peer that was accepted; NULL: none */
    uint32_t last_peer_number;
    PyObject *
        spare_request; /* a Request for the next post, so that a send that completes at once creates none; NULL: none */
};

extern PyTypeObject *poster_type;
PyObject *poster_type_create(PyObject *module);

/* ------------------------------------------------------------------------------------------------------------- posting */

/*
 * Post, and create the request, or return COMPLETED; adopts the buffer reference. An int: the error of the core. `timeout`
 * bounds the wait for space, in nanoseconds (negative: no limit).
 */
PyObject *poster_operation_post(struct poster *poster, PyObject *endpoint, PyObject *type,
                                const struct ofp_operation *op, int64_t timeout, enum kind kind,
                                struct buffer_reference *reference);
/* Replace an error of the core by None: the general function meets it again, and raises it. */
PyObject *poster_error_discard(PyObject *result);
/* None, for arguments that are not plain; NULL if an exception was raised. */
PyObject *poster_none_return(void);
/* A number, or a Peer of the poster's vector. If the peer was removed, the core refuses its number. */
bool poster_peer_resolve(struct poster *poster, PyObject *peer, uint32_t *number);
/* The function in Python that a method in C goes on to, and the text of the method's ml_doc; both owned. */
struct general_function {
    PyObject *function, *text;
};
/* A method of the class, whose signature and documentation are in the text. */
PyObject *general_method_create(PyTypeObject *type, PyMethodDef *method, struct general_function *general,
                                PyObject *function, PyObject *text);
/* Call a method's general function in Python with the arguments of the method. */
PyObject *general_function_call(PyObject *function, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *names);
/* Put peer (None: any, or the only one) and tag (NULL: 0) into a record. False: they are not plain. */
bool poster_arguments_convert(struct poster *poster, PyObject *peer, PyObject *tag, struct ofp_operation *op);
/* Post with this memory: a request, or None. */
PyObject *poster_buffer_post(struct poster *poster, PyObject *endpoint, PyObject *buffer, struct ofp_operation *op);

/*
 * The memory of the peer, if its handle is a plain one and grants all rights of `granted` and none of `refused`. NULL without an
 * exception: it is not, or does not.
 */
const struct ofp_remote_segment *remote_segment_find(PyObject *remote, unsigned long granted, unsigned long refused);
/* The flags of a completion level. False: it is none, and the general function raises the error. */
bool remote_level_convert(PyObject *level, uint64_t *flags);

/* -------------------------------------------------------------------------------------------------- methods of a poster */

extern const char poster_collective_start_doc[];
PyObject *poster_collective_start(PyObject *self, PyObject *arguments);
extern const char poster_agreement_start_doc[];
PyObject *poster_agreement_start(PyObject *self, PyObject *arguments);
extern const char poster_record_start_doc[], poster_record_prepare_doc[], poster_handle_adopt_doc[],
    poster_peer_connect_doc[];
PyObject *poster_record_start(PyObject *self, PyObject *arguments);
PyObject *poster_record_prepare(PyObject *self, PyObject *arguments);
PyObject *poster_handle_adopt(PyObject *self, PyObject *arguments);
PyObject *poster_peer_connect(PyObject *self, PyObject *arguments);

/* --------------------------------------------------------------------------------------------- functions of the module */

extern const char sender_method_create_doc[];
PyObject *sender_method_create(PyObject *module, PyObject *arguments);
extern const char accessor_method_create_doc[];
PyObject *accessor_method_create(PyObject *module, PyObject *arguments);
extern const char updater_method_create_doc[];
PyObject *updater_method_create(PyObject *module, PyObject *arguments);

extern const char prepared_start_doc[], prepared_start_some_doc[];
PyObject *prepared_start(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
PyObject *prepared_start_some(PyObject *module, PyObject *arguments);

#endif
