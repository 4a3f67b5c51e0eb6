/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wait of `await request`.
 *
 * A task that waits needs an object that calls it back. The waiter is that object itself, so that an await creates no other.
 * The thread that completes the request puts the waiter into its loop's wake queue, and the poller's next turn resumes the task.
 */
#include "await/await.h"

/* How long a task keeps a loop that has nothing else to do (ns). A fast peer answers before the loop would have turned. */
#define LOOP_KEPT_NS 20000

static void remove_waiter(struct request *request, struct waiter *waiter)
{
    for (Py_ssize_t i = 0; request->waiters && i < PyList_Size(request->waiters); i++) {
        if (PyList_GetItem(request->waiters, i) == (PyObject *)waiter) {
            PyList_SetSlice(request->waiters, i, i + 1, NULL);
            return;
        }
    }
}

static void register_waiter(struct waiter *waiter, struct source *source)
{
    OFP_CHECK(!waiter->is_registered && !waiter->base.waiting);
    waiter->base.waiting = &source->waiting;
    Py_INCREF((PyObject *)source->notifier);
    waiter->notifier = source->notifier;
    waiter->handle = waiter->request->handle;
    waiter->request->waiter_count++;
    waiter->is_registered = 1;
}

void waiter_end(struct waiter *waiter)
{
    struct request *request = waiter->request;

    if (!waiter->is_registered)
        return;
    OFP_CHECK(request->waiter_count > 0);
    waiter->is_registered = 0;
    if (waiter->base.waiting)
        remove_waiter(request, waiter);
    request_waiter_stop(&waiter->base);
    if (--request->waiter_count == 0)
        notifier_request_remove(waiter->notifier, waiter->handle);
    Py_CLEAR(waiter->notifier);
}

/* Check whether the request has finished; if its loop has nothing else to do, keep the loop and spin for a moment. */
static int spin_for_request(struct waiter *waiter)
{
    struct request *request = waiter->request;
    ofp_request_t handle;
    struct poller *poller;
    int result = request_poll(request);

    if (result != NOT_YET)
        return result;
    if (!waiter->base.queue && !(waiter->base.queue = (struct wake_queue *)poller_get_running()))
        return RAISED;
    poller = poller_of_waiter(waiter);
    if (!poller_can_spin(poller))
        return NOT_YET;
    poller->answers_left--;
    handle = request->handle;
    Py_BEGIN_ALLOW_THREADS core.ofp_request_spin(handle, LOOP_KEPT_NS);
    Py_END_ALLOW_THREADS result = request_poll(request);
    if (result != NOT_YET)
        poller->idle_spins = 0;
    return result;
}

/* Begin to wait: NOT_YET. FINISHED: there is no need to. */
static int start_waiter(struct waiter *waiter)
{
    struct request *request = waiter->request;
    struct source *source;
    int result;

    if (!request->waiters && !(request->waiters = PyList_New(0)))
        return RAISED;
    if (PyList_Append(request->waiters, (PyObject *)waiter) != 0)
        return RAISED;
    source = poller_waiter_add(poller_of_waiter(waiter), request);
    if (!source) {
        remove_waiter(request, waiter);
        return RAISED;
    }
    register_waiter(waiter, source);
    result = notifier_request_register(waiter->notifier, request);
    /* GIL: another thread may have completed the request, and woken this waiter, during a release. */
    return result == NOT_YET && !waiter->base.waiting ? request_poll(request) : result;
}

PySendResult waiter_resume(struct waiter *waiter, PyObject **result)
{
    int state;

    *result = NULL;
    waiter->base.is_woken = 0;
    waiter_end(waiter);
    state = spin_for_request(waiter);
    if (state == NOT_YET)
        state = start_waiter(waiter);
    if (state == NOT_YET) {
        OFP_CHECK(waiter->is_registered && (waiter->base.waiting || waiter->base.is_woken));
        waiter->is_blocking = 1;
        Py_INCREF((PyObject *)waiter);
        *result = (PyObject *)waiter;
        return PYGEN_NEXT;
    }
    waiter_end(waiter);
    if (state == RAISED)
        return PYGEN_ERROR;
    if (waiter->ends_at_event) {
        Py_INCREF(Py_None);
        *result = Py_None;
    } else {
        *result = request_outcome_get(waiter->request);
    }
    return *result ? PYGEN_RETURN : PYGEN_ERROR;
}

/*
 * The cancellation of a receive is exact. When the last task that awaits it is cancelled, the receive is cancelled too: either
 * nothing was received, and a message that was set aside is returned to its place, or the request has finished and its result
 * stays readable. A send is not cancelled.
 */
bool waiter_receive_cancel(struct waiter *waiter)
{
    PyObject *answer;

    if (waiter->ends_at_event || !waiter->is_registered || waiter->request->waiter_count != 1)
        return true;
    answer = PyObject_CallMethod((PyObject *)waiter->request, "_withdraw", NULL);
    Py_XDECREF(answer);
    return answer != NULL;
}

/*
 * The name of the method `run` of contextvars.Context. It is made once, so that resuming a task allocates nothing: a task
 * whose resumption failed for want of memory would never run again.
 */
static PyObject *run_name;

bool waiter_init(void) { return (run_name = PyUnicode_InternFromString("run")) != NULL; }

bool waiter_task_resume(struct waiter *waiter)
{
    PyObject *callback = waiter->callback, *context = waiter->context, *answer;

    waiter->callback = waiter->context = NULL;
    waiter->base.is_woken = 0;
    if (!callback)
        return true;
    if (context && context != Py_None)
        answer = PyObject_CallMethodObjArgs(context, run_name, callback, (PyObject *)waiter, NULL);
    else
        answer = PyObject_CallFunctionObjArgs(callback, (PyObject *)waiter, NULL);
    Py_XDECREF(context);
    Py_DECREF(callback);
    Py_XDECREF(answer);
    /* asyncio lets an exception out of a task only if the loop has to end. */
    return answer != NULL;
}
