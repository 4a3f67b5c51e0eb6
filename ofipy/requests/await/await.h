/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Awaiting requests in an event loop.
 *
 *   notifier.c   one per completion queue: which requests are awaited, and completing those that the queue reports
 *   poller.c     one per event loop: for which queues its tasks wait, and whether a task may keep the loop for a moment
 *   waiter.c     one per `await`: the wait itself
 *   asyncio.c    the waiter's type, as asyncio's tasks use it; the only C file that uses private names of asyncio
 *   turn.c       the poller's type: a turn of the loop, polling and arming; its Python part is ofipy/_completion/aio.py
 *   awaitable.c  the type of requests with `await`
 *
 * Each file uses those above it in this list, and the layer request; submit uses only the functions at the end of this header.
 */
#ifndef OFIPY_REQUESTS_AWAIT_H
#define OFIPY_REQUESTS_AWAIT_H

#include "core.h"
#include "request/request.h"

#define AWAIT_OBJECTS(X) X(make_poller) /* (event loop) -> its new Poller, also stored in the loop as `_ofipy_poller` */

struct await_python {
    AWAIT_OBJECTS(OFIPY_OBJECT_POINTER)
};
extern struct await_python await_python;

/* ------------------------------------------------------------------------------------------------ completion notifiers */

/*
 * The completion notifier of one completion queue. A queue reports that a request has finished only once, and to any thread
 * that reads the report. So the requests are stored here, and each reader completes what it reads on behalf of all loops.
 *
 * GIL: guards every member. `pointer` may be read under the GIL and used after its release: the queue's memory lives as long
 * as `owner`, and the core refuses a closed queue.
 */
struct notifier {
    PyObject_HEAD struct ofp_cq *pointer; /* NULL once the queue is closed */
    PyObject *owner;                      /* of the queue's memory; owned, as all objects here */
    PyObject *queue;                      /* weak reference */
    PyObject *requests;                   /* dict: handle -> request, of those that have waiters */
};

/* Have the queue report the end of this request: NOT_YET; FINISHED if it has ended already; RAISED. */
int notifier_request_register(struct notifier *notifier, struct request *request);
void notifier_request_remove(struct notifier *notifier, ofp_request_t handle);
/*
 * Complete all requests that the queue reports: how many, -errno, or INT64_MIN with an exception. `progress`: if there is no
 * report, make progress (without the GIL) and check again.
 */
int64_t notifier_collect(struct notifier *notifier, bool progress);
/*
 * Arm the queue's descriptor: 1 if it is safe to sleep, 0 if the queue has to be read first, -errno. `at_once`: do not release
 * the GIL; then 0 also means that arming would take longer.
 */
int notifier_queue_arm(struct notifier *notifier, bool at_once);
PyObject *notifier_type_create(PyObject *module);

/* ------------------------------------------------------------------------------------------------------------- pollers */

/*
 * A queue for which waiters of one event loop wait (an event source of the loop). Owned by the poller, and freed when no
 * waiter is left. GIL: guards every member.
 */
struct source {
    struct source *next;
    struct notifier *notifier; /* owned */
    Py_ssize_t waiting;        /* waiters; each of them has a pointer to this count */
};

/* After so many spins in a row without an event, sleeping is better: the peer may need the same core. */
#define MISSES_ENOUGH 3

/*
 * The poller of one event loop; see turn.c. A turn runs in the loop's thread; waiters may be woken by any thread.
 *
 * GIL: guards every member. The list of sources may change whenever code of Python runs, so loops that run such code iterate
 * over a copy.
 */
struct poller {
    struct wake_queue wake;
    PyObject *weak_references;
    PyObject *loop, *cancelled; /* the event loop; asyncio.CancelledError. Owned, as all objects here */
    PyObject *loop_ready;   /* the collection of callbacks that the loop runs next; None if the loop does not show it */
    PyObject *watched;      /* dict: notifiers whose queues' descriptors the loop watches */
    struct source *sources; /* owned */
    int answers_left;       /* how many more tasks may keep the loop before it makes a turn */
    int idle_spins;         /* spins in a row without an event */
    long long longest_spin; /* ns; 0: the loop sleeps at once */
    char foreign_selector;  /* the loop's selector is not an ofipy.Selector: to poll, the loop has to turn */
};

/* How many tasks in a row may keep the loop, before it turns for other tasks, timers and descriptors. */
#define ANSWERS_PER_TURN 16

/* The poller of the event loop that runs in this thread, a new reference; NULL with an exception. */
struct poller *poller_get_running(void);
/* Count one more waiter for the request's queue; the source is borrowed. NULL with an exception. */
struct source *poller_waiter_add(struct poller *poller, struct request *request);
/* Whether the loop has nothing else to do, so that a task may keep it for a moment. */
bool poller_can_spin(const struct poller *poller);
/* Free the sources without waiters, or all. */
void poller_sources_free(struct poller *poller, bool all);

/* ------------------------------------------------------------------------------------------------------------- waiters */

/*
 * The iterator that `await` of a request runs. asyncio's task treats it as a future: it stores a callback in it, and the
 * poller calls that to resume the task.
 *
 * GIL: guards every member.
 */
struct waiter {
    struct request_waiter base; /* base.queue is a struct poller */
    struct request *request;    /* owned, as all objects here */
    struct notifier *notifier;  /* in which `handle` is registered; NULL: none */
    ofp_request_t handle;       /* the request's, when the wait began: a prepared request may have another run by now */
    PyObject *callback, *context; /* of the task, to be called once; NULL: none */
    char is_blocking;             /* set by `await` and cleared by the task, as in asyncio's futures */
    char is_registered;           /* counted in request->waiter_count; `notifier` is set */
    char ends_at_event;           /* ends at the next event of the request, and returns None */
};

/* Continue the wait of `await`: PYGEN_NEXT if it has to wait. */
PySendResult waiter_resume(struct waiter *waiter, PyObject **result);
/* End the wait, if there is one. */
void waiter_end(struct waiter *waiter);
/* Before a task is cancelled: cancel the receive for which no other task waits. False with an exception. */
bool waiter_receive_cancel(struct waiter *waiter);
/* Call the task's callback, which runs the task. False with an exception. */
bool waiter_task_resume(struct waiter *waiter);
/* Called once, before the first call of the others. False with an exception. */
bool waiter_init(void);

static inline struct poller *poller_of_waiter(const struct waiter *waiter)
{
    return (struct poller *)waiter->base.queue;
}

/* A waiter for this request: a new reference. */
PyObject *waiter_create(PyObject *request, bool ends_at_event);
PyObject *waiter_type_create(PyObject *module);

/* --------------------------------------------------------------------------------------------- for the layers above */

/* Whether an event loop runs in this thread: 1, 0, or -1 with an exception. */
int await_loop_is_running(void);
/* The same as a function of the module. */
PyObject *await_loop_query(PyObject *module, PyObject *ignored);

PyObject *poller_type_create(PyObject *module);
/* RequestBase; after request_type_create(). */
PyObject *awaitable_type_create(PyObject *module);

#endif
