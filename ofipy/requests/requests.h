/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Python extension module ofipy._requests: the request tier's objects.
 *
 * The problem: a request, its slot in the core and its hold on the buffer have to come into being together, whatever
 * exception comes up between two instructions of Python, and calls of a tenth of a microsecond should not let go of the
 * interpreter's lock. So they are made here: a Request exists before its operation is posted, the completion is written
 * into it by the core, and when it is dropped its operation is taken back, or its memory is left to a list (orphan.c) until
 * the core is done with it. All else is Python and cffi.
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
#include <time.h>

#include "ofipy/request.h"

/* What is called of the core; Python fills it with the addresses that cffi knows. */
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
    X(FetchRequest)    /* and of what an atomic makes that has old values */                                           \
    X(AtomicOp)        /* the type */                                                                                  \
    X(ATOMIC_OPS)      /* dict: members and names of AtomicOp -> their numbers */                                      \
    X(COMPLETED)       /* the request of all sends that were over at once */                                           \
    X(start_all)       /* (prepared requests, timeout): start them as there is room, or raise */                       \
    X(make_poller)     /* (event loop) -> its Poller, which it then has as `_ofipy_poller` */

struct hooks {
#define OFIPY_HOOK(name) PyObject *name;
    OFIPY_HOOKS(OFIPY_HOOK)
#undef OFIPY_HOOK
};
extern struct hooks hooks;

/* Memory of an operation under way: an object that keeps it, or an export of a buffer, or both. Zero: none. */
struct buffer_reference {
    PyObject *owner;
    Py_buffer view; /* view.obj NULL: none */
};
void buffer_reference_release(struct buffer_reference *reference);

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
    struct buffer_reference buffer;
    bool cancel;
};

/* One for each endpoint, alias and shared receive context. */
struct poster {
    PyObject_HEAD struct ofp_endpoint *pointer; /* NULL once closed */
    PyObject *domain;                           /* of the regions that may be used; owned, as all objects here */
    PyObject *vector;                           /* what its peers refer to as `_vector` */
    PyObject *find_allocation;                  /* (address, length) -> Allocation or None: of the domain's memory */
    PyObject *allocation_starts;                /* list: not empty where the domain has allocated memory */
    PyObject *find_owned;                       /* (array, address, length) -> (number, offset) or None: its region */
    uint64_t owned_above;                       /* arrays of more bytes have one, maybe */
    PyObject *last_peer, *last_region;          /* the last of each that was found to be right; NULL: none */
    uint32_t last_peer_number;
    struct ofp_segment last_region_segment;
    uint64_t found_at_free_count; /* so many frees of memory; see memory.c */
    uint64_t found_address;       /* of the last array that was looked up, 0: none; as a segment: */
    struct ofp_segment found_segment;
    PyObject *spare_request;               /* a Request of type hooks.Request for the next post; NULL: none */
    struct orphan *orphans, **orphans_end; /* owned, in the order in which they are looked at */
    uint64_t orphan_count;                 /* now */
    PyObject *successor;                   /* poster: who looks after its orphans once it is closed; NULL: itself */
};

struct request {
    PyObject_HEAD PyObject *weak_references;
    PyObject *endpoint;             /* owned, as all objects here */
    PyObject *poster;               /* NULL: nothing was ever posted for it */
    PyObject *watchers;             /* list of who is told once when it has news, waiters or functions; NULL: none */
    PyObject *fetched;              /* array of the old values, what wait() returns; NULL: the operation has none */
    PyObject *rows;                 /* MANY: list of bytes, completions that were taken and not looked at yet */
    struct buffer_reference buffer; /* of its memory, while the operation runs */
    ofp_request_t handle;           /* 0: it is over, and owns nothing of the core's */
    struct ofp_completion completion;
    uint64_t buffer_length; /* bytes, of a receive */
    uint32_t peer;
    uint16_t op;
    int waiter_count; /* waiters */
    char kind;        /* enum kind */
    char has_result;  /* `completion` is the result */
    char
        is_delivered; /* the posting method was left with it, so that dropping it leaves a receive posted; MESSAGE: the program
                     has the message, so that dropping it gives nothing back */
    char is_claimed;     /* MESSAGE: it holds the message, which is on its way into hold.keep, or there */
    char is_too_large;   /* MESSAGE: there was no memory for it, and it was dropped */
    char is_result_lost; /* its domain was closed, or its process forked, before the result was taken */
};

/* Of one completion queue: the requests that somebody awaits, which the queue tells of once they have finished. */
struct notifier {
    PyObject_HEAD struct ofp_cq *pointer; /* NULL once closed */
    PyObject *owner;                      /* keeps the pointer's memory; owned, as all objects here */
    PyObject *queue;                      /* weak reference */
    PyObject *requests;                   /* dict: handle -> request, of those that have waiters */
};

/* A queue that waiters of one event loop wait for; goes when there are none. */
struct source {
    struct source *next;
    struct notifier *notifier; /* owned */
    Py_ssize_t waiting;
};

/* So many spins in a row without anything: sleeping is better, as on a core that the peer needs too. */
#define MISSES_ENOUGH 3

/* Of one event loop: who waits in it, and for which queues; see poller.c. Its Python part is in aio.py. */
struct poller {
    PyObject_HEAD PyObject *weak_references;
    PyObject *loop, *loop_ready, *cancelled; /* `ready`: what the loop runs next, None where it does not tell; owned */
    PyObject *woken;                         /* list of waiters whose tasks are to go on; owned */
    PyObject *watched;                       /* dict: notices whose queues' descriptors the loop watches; owned */
    struct source *sources;                  /* owned */
    Py_ssize_t waiting;                      /* waiters that nobody has woken */
    int answers_left;                        /* how often more a task may be answered before the loop turns */
    int idle_spins;                          /* spins in a row that met nothing */
    long long longest_spin;                  /* ns; 0: it sleeps at once */
    char foreign_selector;                   /* the loop's selector is not ours: to poll, it has to turn */
    char had_event;                          /* something came, or somebody began to wait, since the last spin */
    char is_turning;                         /* woken waiters are being dealt with */
    char is_scheduled;                       /* the loop will call `turn` */
};

/* What `await` of a request runs: an iterator, and in its task's eyes a future; see waiter.c. */
struct waiter {
    PyObject_HEAD struct request *request; /* owned, as all objects here */
    struct poller *poller;                 /* NULL: it has not waited yet */
    struct source *source;                 /* of the poller, borrowed; NULL: it is not waiting now */
    struct notifier *notifier;             /* that it was entered into as `handle`; NULL: none */
    ofp_request_t handle;
    PyObject *callback, *context; /* of the task that it keeps; NULL: none */
    char is_blocking;             /* for the task: it was yielded by `await` */
    char is_registered;           /* in request->awaiting, and `notices` is set */
    char woken;                   /* in poller->woken */
    char ends_at_event;           /* ends at any news of the request, without its result */
};

/* Whether there is something to end or to give back. */
static inline bool request_has_operation(const struct request *request) { return request->poster && request->handle; }

extern PyTypeObject *request_type, *poster_type, *waiter_type, *poller_type, *notifier_type;
PyObject *request_type_create(PyObject *module);
PyObject *poster_type_create(PyObject *module);
PyObject *waiter_type_create(PyObject *module);
PyObject *poller_type_create(PyObject *module);
PyObject *notifier_type_create(PyObject *module);

/* A request without an operation yet. */
struct request *request_allocate(PyTypeObject *type);
/* Its operation has been posted; the hold moves into it. */
void request_operation_attach(struct request *request, struct poster *poster, PyObject *endpoint, ofp_request_t handle,
                              const struct ofp_operation *op, struct buffer_reference *reference);

/* poster.c. Post, and make the request. The hold is taken over. An int: the core's error. */
PyObject *poster_operation_post(struct poster *poster, PyObject *endpoint, PyObject *type,
                                const struct ofp_operation *op, int64_t timeout, enum kind kind,
                                struct buffer_reference *reference);
/* None in place of an error: the general way meets it again and says it in full. */
PyObject *poster_error_discard(PyObject *result);
/* A number, or a Peer of the poster's vector; whether it was removed since is what the core knows. */
bool poster_peer_resolve(struct poster *poster, PyObject *peer, uint32_t *number);

/* Put peer (None: anyone, or the only one) and tag (NULL: 0) into a record. False: the general way deals with them. */
bool poster_arguments_convert(struct poster *poster, PyObject *peer, PyObject *tag, struct ofp_operation *op);
/* Post with this memory. None: the general way is to do it. */
PyObject *poster_buffer_post(struct poster *poster, PyObject *endpoint, PyObject *buffer, struct ofp_operation *op);

/* send.c */
extern const char sender_method_create_doc[];
PyObject *sender_method_create(PyObject *module, PyObject *arguments);

/* remote.c: methods of a poster. */
extern const char poster_rma_post_doc[], poster_atomic_post_doc[];
PyObject *poster_rma_post(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *poster_atomic_post(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

#define FINISHED 1
#define NOT_YET 0
#define RAISED (-1)
/*
 * See whether it has finished, for nanoseconds (negative: for a second). A multi-receive buffer: whether there is a row.
 */
int request_wait_once(struct request *request, int64_t timeout);
/* The same of what has finished already; never waits. */
int request_poll(struct request *request);
/* Mark the request over; returns SETTLED. After an error it holds nothing of the core's. */
int request_complete(struct request *request);
int request_end(struct request *request, int error);
/* What waiting for a request that is over returns, or raises. */
PyObject *request_outcome_get(struct request *request);

/* claim.c: have the message that the core holds for it received into memory of its size. */
int request_claim(struct request *request);
extern const char request_message_return_doc[];
PyObject *request_message_return(PyObject *self, PyObject *ignored);
PyObject *request_is_delivered(PyObject *self, void *closure);
int request_delivered_set(PyObject *self, PyObject *value, void *closure);

/* waiter.c */
PyObject *request_waiter_create(PyObject *request);
PyObject *request_event_waiter_create(PyObject *request, PyObject *ignored);
/* There is news of its request: its task goes on in the next turn of its loop. */
void waiter_wake(struct waiter *waiter);

/* poller.c: that of the loop which runs in this thread; NULL with an exception. */
struct poller *poller_get_running(void);
/* One more waits for the queue of this request, borrowed; NULL with an exception. */
struct source *poller_waiter_add(struct poller *poller, struct request *request);
/* Whether its loop has nothing else to do, so that a task may keep it for a moment. */
bool poller_can_spin(const struct poller *poller);
/* Have the loop turn. */
void poller_schedule(struct poller *poller);

/* notices.c: have the queue tell of the request's end: NOT_YET, or SETTLED where it is here; RAISED. */
int notifier_request_register(struct notifier *notifier, struct request *request);
void notifier_request_remove(struct notifier *notifier, ofp_request_t handle);
/* Take what the queue has told of: how many, -errno, or INT64_MIN with an exception. `progress`: look for more first. */
int64_t notifier_collect(struct notifier *notifier, bool progress);
/* Whether it is safe to sleep on the queue's descriptor: 1, 0 or -errno; `at_once`: 0 also where that takes a longer look. */
int notifier_queue_arm(struct notifier *notifier, bool at_once);

/* rows.c: of a multi-receive buffer. */
PyObject *request_row_pop(PyObject *self, void *closure);
PyObject *request_rows_count(PyObject *self, void *closure);

/* start.c: of prepared requests. */
extern const char prepared_start_doc[], prepared_start_some_doc[];
PyObject *prepared_start(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
PyObject *prepared_start_some(PyObject *module, PyObject *arguments);

/* Put what still runs into the list, or end it. The hold is taken over in any case. */
void request_operation_abandon(struct poster *poster, struct request *request);
/* Let go of what has ended meanwhile: of all, or of the next few. */
void orphans_sweep(struct poster *poster, bool all);
void orphans_move(struct poster *poster, struct poster *successor);
void orphans_free(struct poster *poster);

/* Used by several files of one folder. */
void notify_watchers(struct request *request);
int append_row(struct request *request, const struct ofp_completion *completion);
void free_sources(struct poller *poller, bool all);
bool resume_task(struct waiter *waiter);
void deregister_waiter(struct waiter *waiter);
PySendResult waiter_send(PyObject *self, PyObject *value, PyObject **result);
bool cancel_receive(struct waiter *waiter);
extern const char start_doc[], prepare_doc[], adopt_doc[], reach_doc[];
PyObject *start_record(PyObject *self, PyObject *arguments);
PyObject *prepare_record(PyObject *self, PyObject *arguments);
PyObject *adopt_handle(PyObject *self, PyObject *arguments);
PyObject *connect_peer(PyObject *self, PyObject *arguments);

/* Put a new reference where an old one, or none, was. */
static inline void replace_object(PyObject **place, PyObject *object)
{
    PyObject *old = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(old);
}

/* Nanoseconds. */
static inline int64_t get_time_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Of at most so many bytes a call keeps the interpreter's lock. */
#define COPIED_AT_ONCE 8192

#endif
