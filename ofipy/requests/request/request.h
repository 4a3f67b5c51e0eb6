/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request ties three things together: a slot in the core, a reference to the buffer, and the Python object through which the
 * program waits. Python can raise an exception between any two instructions, so the object exists before its operation is
 * posted, and every step is written so that the request is valid if an exception follows.
 *
 * States of a request (`kind` says which of them it can have):
 *
 *   no operation   handle 0, has_result 0    new, or PREPARED after a failed creation
 *   running        handle set, has_result 0
 *   message        handle set, is_claimed    MESSAGE: the core receives the message into `buffer`, or has done so
 *   finished       has_result                handle 0, except for PREPARED and for a message that is not delivered yet
 *
 * The layers above post requests (submit) and wait for them in event loops (await). This layer knows posters only as owners
 * of orphans, and waiters only as `struct request_waiter`.
 */
#ifndef OFIPY_REQUESTS_REQUEST_H
#define OFIPY_REQUESTS_REQUEST_H

#include "core.h"
#include "memory/memory.h"

#define REQUEST_OBJECTS(X)                                                                                             \
    X(nanoseconds) /* (timeout) -> int, after a check; raises if it is invalid */                                      \
    X(drain_log)   /* () */                                                                                            \
    X(Request)     /* the type of a request that returns itself from wait() */                                         \
    X(COMPLETED)   /* the request of all sends that completed within their call */

struct request_python {
    REQUEST_OBJECTS(OFIPY_OBJECT_POINTER)
};
extern struct request_python request_python;

/* Which completions a request has, and what becomes of its operation when the request is deleted. */
enum kind {
    PLAIN,    /* one completion */
    VALUE,    /* one completion; wait() returns `fetched` as it is */
    MESSAGE,  /* a receive of unknown size: a message is set aside, then received into memory of its size */
    PREPARED, /* started repeatedly; one completion for each run */
    MANY,     /* a multi-receive buffer: one completion after the other, stored in `rows` */
};

/* A completion of a multi-receive buffer. Owned by `rows` of its request, or by the call that has it. */
struct request_row {
    struct request_row *next;
    struct ofp_completion completion;
};

/* Completions that the program has not read yet, the oldest first. */
struct request_rows {
    struct request_row *first, *last;
    Py_ssize_t count;
};

/*
 * GIL: guards every member, with one exception. `completion` is written by the core while the GIL is released (in
 * request_wait_once() and request_claim()). Two threads may be in the core with the same request then; the core completes a
 * handle once, so only one of them writes. `completion` is read only after such a call has returned, or when has_result is set.
 *
 * After each release of the GIL another thread may have completed, claimed or cancelled the request: check has_result again.
 */
struct request {
    PyObject_HEAD PyObject *weak_references;
    PyObject *endpoint;       /* owned, as all objects here */
    PyObject *orphans;        /* the struct orphan_owner of its poster; NULL: nothing was ever posted */
    PyObject *waiters;        /* list of struct request_waiter, to be woken at the next event; NULL: none */
    PyObject *watchers;       /* list of functions, to be called at the next event; NULL: none */
    PyObject *fetched;        /* what wait() returns: array of the old values of an atomic; VALUE: anything; or NULL */
    struct request_rows rows; /* MANY */
    struct buffer_reference buffer; /* while the operation runs */
    ofp_request_t handle;           /* 0: it uses no slot of the core */
    struct ofp_completion completion;
    uint64_t buffer_length; /* bytes, of a receive */
    uint32_t peer;
    uint32_t incarnation; /* MESSAGE: number of the sender's, of the message that was set aside; 0: unknown */
    uint16_t op;
    int waiter_count;
    char kind;       /* enum kind */
    char has_result; /* `completion` is the result */
    /* The posting method has returned the request, so deleting it leaves a receive posted. MESSAGE: the program has the
       message, so deleting the request does not return the message to the core. */
    char is_delivered;
    char is_claimed;     /* MESSAGE: the message is being received, or was received, into buffer.owner */
    char is_too_large;   /* MESSAGE: there was no memory for the message, and it was discarded */
    char is_result_lost; /* the domain was closed, or the process forked, before the result was read */
};

/* Whether an operation has to be ended, or a message to be returned, when the request is deleted. */
static inline bool request_has_operation(const struct request *request) { return request->orphans && request->handle; }

/* The type of a request without `await`, which the layer await adds; set by request_type_create(). */
extern PyTypeObject *request_type;
PyObject *request_type_create(PyObject *module);

/* -------------------------------------------------------------------------------------------------------------- begin */

/* A request without an operation. */
struct request *request_allocate(PyTypeObject *type);
/* Its operation has been posted: adopt handle and buffer reference. */
void request_operation_attach(struct request *request, struct orphan_owner *orphans, PyObject *endpoint,
                              ofp_request_t handle, const struct ofp_operation *op, struct buffer_reference *reference);
/* Delete the request's part in its operation; the operation becomes an orphan, or ends. Requires request_has_operation(). */
void request_operation_abandon(struct request *request);

/* ---------------------------------------------------------------------------------------------------------------- end */

#define FINISHED 1
#define NOT_YET 0
#define RAISED (-1)

/*
 * Check whether it has finished; wait in the core, without the GIL, for at most `timeout` nanoseconds (negative: a second).
 * FINISHED for a multi-receive buffer: there is a row.
 */
int request_wait_once(struct request *request, int64_t timeout);
/* Wait for nanoseconds (negative: without limit), running signal handlers: FINISHED, NOT_YET if the time is over, or RAISED. */
int request_wait(struct request *request, int64_t timeout);
/* Check whether the core has completed it, without progress and without waiting. */
int request_poll(struct request *request);

/* Record the result, release what it owns, notify waiters and watchers; returns FINISHED. */
int request_complete(struct request *request);
int request_end(struct request *request, int error);
/* The value that wait() and await return for a finished request; NULL with the exception that they raise. */
PyObject *request_outcome_get(struct request *request);
/* The same of a list: of its first requests, as far as they have finished and need no Python. */
extern const char request_outcomes_collect_doc[];
PyObject *request_outcomes_collect(PyObject *module, PyObject *requests);

/* Wake the waiters and call the watchers, once; those who want more events enter again. */
void request_waiters_wake(struct request *request);

/* The same; inline, since most requests have neither. */
static inline void request_waiters_notify(struct request *request)
{
    if (__builtin_expect(request->waiters || request->watchers, 0))
        request_waiters_wake(request);
}

/* Run signal handlers and write the log, between two rounds of waiting: 0, or -1 with an exception. */
int request_interruptions_handle(void);

/* A call copies at most so many bytes while it keeps the GIL: copying them takes less time than releasing the GIL. */
#define COPIED_WITH_GIL 8192

/* ------------------------------------------------------------------------------------------- receives of unknown size */

/* Have the message that was set aside for the request received into a new bytearray of its size: FINISHED, NOT_YET, RAISED. */
int request_claim(struct request *request);
extern const char request_message_return_doc[];
PyObject *request_message_return(PyObject *self, PyObject *ignored);
PyObject *request_is_delivered(PyObject *self, void *closure);
int request_delivered_set(PyObject *self, PyObject *value, void *closure);

/* ------------------------------------------------------------------------------------------------ multi-receive buffers */

/* Room for a completion, before the core is asked for one: what it has told cannot be told again. NULL with MemoryError. */
struct request_row *request_row_reserve(void);
/* Store one more completion of the buffer, in its room; the last one completes the request. Returns FINISHED. */
int request_row_append(struct request *request, struct request_row *row);
void request_rows_free(struct request *request);
PyObject *request_row_pop(PyObject *self, void *closure);
PyObject *request_rows_count(PyObject *self, void *closure);

/* ------------------------------------------------------------------------------------------------------ waking waiters */

/*
 * The waiters of one event loop that have been woken. The first member of a poller, and all that requests know of one.
 *
 * GIL: guards every member. Any thread that completes a request wakes the waiters of any loop.
 */
struct wake_queue {
    PyObject_HEAD PyObject *woken; /* list of waiters, to be resumed in the loop's next turn; owned */
    Py_ssize_t waiting;            /* waiters that wait, and are not woken yet */
    char had_event;                /* a waiter was woken, or began to wait, since the last spin */
    char is_turning;               /* a turn is resuming waiters; it checks `woken` at its end */
    char is_scheduled;             /* the loop will call the next turn */
};

/*
 * A task that waits for a request. The first member of a waiter, and all that requests know of one.
 *
 * GIL: guards every member.
 */
struct request_waiter {
    PyObject_HEAD struct wake_queue *queue; /* of the loop of its task, owned; NULL: it has not waited yet */
    Py_ssize_t
        *waiting; /* the count of waiters in which it is included, besides queue->waiting; NULL: it does not wait now */
    char is_woken; /* in queue->woken */
};

/* End the wait: correct the counts. It does nothing if the waiter does not wait. */
void request_waiter_stop(struct request_waiter *waiter);
/* End the wait, and resume the task in the next turn of its loop. */
void request_waiter_wake(struct request_waiter *waiter);
/* Resume the task in the next turn of its loop. false: not so, with an exception; a later call tries again. */
bool request_waiter_resume(struct request_waiter *waiter);
/* Have the loop make a turn; calls `_schedule` of the poller, in Python. false: with an exception. */
bool wake_queue_schedule(struct wake_queue *queue);
/* Called once, before the first call of the others. false: with an exception. */
bool wake_queue_init(void);

#endif
