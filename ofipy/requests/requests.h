/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Python extension module ofipy._requests: the request tier's objects.
 *
 * The problem: a request, its slot in the core and its hold on the buffer have to come into being together, whatever
 * exception comes up between two instructions of Python, and calls of a tenth of a microsecond should not let go of the
 * interpreter's lock. So they are made here: a Request exists before its operation is posted, the completion is written
 * into it by the core, and when it is dropped its operation is taken back, or its memory is left to a list (orphan.c) until
 * the operation has ended. All else is Python and cffi.
 *
 * Everything here is guarded by the interpreter's lock, except that calls of the core run without it where they may wait or
 * copy much; what such a call writes to (the completion) is read only after the call, or after one that saw its end.
 */
#ifndef OFIPY_REQUESTS_H
#define OFIPY_REQUESTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>

#include "ofipy/request.h"

/* What is called of the core; Python fills it with the addresses that cffi knows. */
#define OFIPY_CALLS(X)                                                                                                 \
    X(ofp_request_t, ofp_request_start, (struct ofp_endpoint *, const struct ofp_operation *, uint32_t, int64_t))      \
    X(int, ofp_request_finished, (ofp_request_t))                                                                      \
    X(int, ofp_request_take, (ofp_request_t, int64_t, struct ofp_completion *))                                        \
    X(int, ofp_request_take_finished, (ofp_request_t, struct ofp_completion *))                                        \
    X(int, ofp_request_cancel, (ofp_request_t))                                                                        \
    X(int, ofp_request_claim, (ofp_request_t, uint32_t, uint64_t, uint64_t))                                           \
    X(int, ofp_request_discard, (ofp_request_t))                                                                       \
    X(int, ofp_request_unclaim, (ofp_request_t))                                                                       \
    X(int, ofp_request_notify, (ofp_request_t))                                                                        \
    X(int, ofp_request_abandon, (ofp_request_t, bool))                                                                 \
    X(ofp_request_t, ofp_prepare, (struct ofp_endpoint *, const struct ofp_operation *))                               \
    X(int, ofp_start_many, (const ofp_request_t *, uint64_t, uint32_t, int64_t))                                       \
    X(int, ofp_log_waiting, (void))

struct calls {
#define OFIPY_POINTER(result, name, arguments) result(*name) arguments;
    OFIPY_CALLS(OFIPY_POINTER)
#undef OFIPY_POINTER
};
extern struct calls core;

/* What is called of Python; set once by bind(). Owned. */
#define OFIPY_HOOKS(X)                                                                                                 \
    X(nanoseconds)     /* (timeout) -> int: checks it, raises what is wrong */                                         \
    X(drain_log)       /* () */                                                                                        \
    X(loop_is_running) /* () -> bool: an event loop runs in this thread */                                             \
    X(Region)          /* the type */                                                                                  \
    X(Request)         /* the type of what tsend, trecv and rma make */                                                \
    X(COMPLETED)       /* the request of all sends that were over at once */                                           \
    X(start_all)       /* (prepared requests, timeout): start them as there is room, or raise */

struct hooks {
#define OFIPY_HOOK(name) PyObject *name;
    OFIPY_HOOKS(OFIPY_HOOK)
#undef OFIPY_HOOK
};
extern struct hooks hooks;

/* Memory of an operation under way: an object that keeps it, or an export of a buffer, or both. Zero: none. */
struct hold {
    PyObject *keep;
    Py_buffer view; /* view.obj NULL: none */
};
void hold_release(struct hold *hold);

/* What a request does with its completions, and when it is dropped. */
enum kind {
    PLAIN,    /* one completion */
    MESSAGE,  /* a receive of unknown size: takes hold of a message, then receives it into memory of its size */
    PREPARED, /* started again and again */
    MANY,     /* of a multi-receive buffer: one completion after the other, kept in `rows` */
};

struct orphan {
    struct orphan *next;
    ofp_request_t handle;
    struct hold hold;
    bool cancel;
    /* A message on its way into memory, for the next receive that it matches. */
    bool is_message;
    struct ofp_completion completion; /* of a message that has arrived: handle 0 */
    uint64_t number;                  /* in the order in which they were left */
    uint16_t op;
};

/* One for each endpoint, alias and shared receive context. */
struct poster {
    PyObject_HEAD struct ofp_endpoint *pointer; /* NULL once closed */
    PyObject *domain;                           /* of the regions that may be used; owned, as all objects here */
    PyObject *vector;                           /* what its peers refer to as `_vector` */
    PyObject *find;                             /* (address, length) -> Allocation or None: of the domain's memory */
    PyObject *starts;                           /* list: not empty where the domain has allocated memory */
    PyObject *peer, *region;                    /* the last of each that was found to be right; NULL: none */
    uint32_t peer_number;
    struct ofp_segment region_segment;
    uint64_t found_address; /* of the last array that was looked up, 0: none; as a segment: */
    struct ofp_segment found_segment;
    PyObject *spare;                       /* a Request of type hooks.Request for the next post; NULL: none */
    struct orphan *orphans, **orphans_end; /* owned, in the order in which they are looked at */
    uint64_t orphan_count, orphans_left;   /* now; ever */
    PyObject *heir;                        /* poster: who looks after its orphans once it is closed; NULL: itself */
};

struct request {
    PyObject_HEAD PyObject *weak_references;
    PyObject *endpoint;   /* owned, as all objects here */
    PyObject *poster;     /* NULL: nothing was ever posted for it */
    PyObject *watchers;   /* list of functions to call once when it has news; NULL: none */
    PyObject *rows;       /* MANY: list of bytes, completions that were taken and not looked at yet */
    struct hold hold;     /* of its memory, while the operation runs */
    ofp_request_t handle; /* 0: it is over */
    struct ofp_completion completion;
    uint64_t tag, ignore; /* MESSAGE: what it takes */
    uint64_t room;        /* bytes, of a receive */
    uint32_t peer;
    uint16_t op;
    int awaiting; /* tasks */
    char kind;    /* enum kind */
    char over;    /* `completion` is the result */
    char kept; /* the posting method was left with it, so that dropping it leaves a receive posted; MESSAGE: the program
                       has the message, so that dropping it gives nothing back */
    char claimed;   /* MESSAGE: on its way into hold.keep */
    char too_large; /* MESSAGE: there was no memory for it, and it was dropped */
    char gone;      /* its domain was closed, or its process forked, before the result was taken */
};

/* Whether there is something to end or to give back. */
static inline bool request_is_needed(const struct request *request)
{
    return request->poster && (request->handle || (request->kind == MESSAGE && request->claimed && !request->kept));
}

extern PyTypeObject *request_type, *poster_type;
PyObject *make_request_type(PyObject *module);
PyObject *make_poster_type(PyObject *module);

/* A request without an operation yet. */
struct request *request_new(PyTypeObject *type);
/* Its operation has been posted; the hold moves into it. */
void request_begin(struct request *request, struct poster *poster, PyObject *endpoint, ofp_request_t handle,
                   const struct ofp_operation *op, struct hold *hold);

/* rows.c: of a multi-receive buffer. */
PyObject *request_message(PyObject *self, void *closure);
PyObject *request_rows(PyObject *self, void *closure);

/* start.c: of prepared requests. */
extern const char prepared_start_doc[], prepared_start_some_doc[];
PyObject *requests_start(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
PyObject *requests_start_some(PyObject *module, PyObject *arguments);

/* Put what still runs into the list, or end it. The hold is taken over in any case. */
void orphan_leave(struct poster *poster, struct request *request);
/* Let go of what has ended meanwhile: of all, or of the next few. */
void orphans_sweep(struct poster *poster, bool all);
/* A message that was given back and fits goes into the request: true. */
bool orphans_find_message(struct poster *poster, struct request *request);
void orphans_inherit(struct poster *poster, struct poster *heir);
void orphans_free(struct poster *poster);

/* Put a new reference where an old one, or none, was. */
static inline void replace_object(PyObject **place, PyObject *object)
{
    PyObject *old = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(old);
}

/* Of at most so many bytes a call keeps the interpreter's lock. */
#define COPIED_AT_ONCE 8192

#endif
