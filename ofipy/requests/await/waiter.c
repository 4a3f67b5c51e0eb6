/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `await request`.
 *
 * A task that has to wait needs something that calls it back: of asyncio's futures it knows get_loop(), add_done_callback(),
 * cancel() and result(). The waiter, the iterator that `await` runs, is that itself, so that nothing else is made. Whoever
 * settles the request puts it into its poller's list, and the poller's next turn resumes the task.
 *
 * A cancelled task is woken as any other, and asyncio then throws the cancellation into it.
 */
#include "requests.h"

/* How long a task keeps a loop that has nothing else to do (ns): a fast peer answers sooner than the loop turns. */
#define KEEPS_LOOP 20000

/* ------------------------------------------------------------------------------------------------------------- waiting */

/* It waits no longer; whether it goes on is its caller's affair. */
static void stop_waiter(struct waiter *waiter)
{
    if (!waiter->source)
        return;
    waiter->source->waiting--;
    waiter->poller->waiting--;
    waiter->source = NULL;
}

void waiter_wake(struct waiter *waiter)
{
    stop_waiter(waiter);
    if (waiter->woken)
        return;
    waiter->woken = 1;
    waiter->poller->had_event = 1;
    if (PyList_Append(waiter->poller->woken, (PyObject *)waiter) != 0)
        PyErr_WriteUnraisable((PyObject *)waiter);
    poller_schedule(waiter->poller);
}

static void remove_watcher(struct request *request, struct waiter *waiter)
{
    for (Py_ssize_t i = 0; request->watchers && i < PyList_Size(request->watchers); i++) {
        if (PyList_GetItem(request->watchers, i) == (PyObject *)waiter) {
            PyList_SetSlice(request->watchers, i, i + 1, NULL);
            return;
        }
    }
}

static void register_waiter(struct waiter *waiter, struct source *source)
{
    waiter->source = source;
    Py_INCREF((PyObject *)source->notifier);
    waiter->notifier = source->notifier;
    waiter->handle = waiter->request->handle;
    waiter->request->waiter_count++;
    waiter->is_registered = 1;
}

/* The end of a wait, however it ends. */
void deregister_waiter(struct waiter *waiter)
{
    struct request *request = waiter->request;

    if (!waiter->is_registered)
        return;
    waiter->is_registered = 0;
    if (waiter->source)
        remove_watcher(request, waiter);
    stop_waiter(waiter);
    if (--request->waiter_count == 0)
        notifier_request_remove(waiter->notifier, waiter->handle);
    Py_CLEAR(waiter->notifier);
}

/* Whether it has finished, for which a task may keep its loop a moment. */
static int spin_for_request(struct waiter *waiter)
{
    struct request *request = waiter->request;
    int result = request_poll(request);

    if (result != NOT_YET)
        return result;
    if (!waiter->poller && !(waiter->poller = poller_get_running()))
        return RAISED;
    if (!poller_can_spin(waiter->poller))
        return NOT_YET;
    waiter->poller->answers_left--;
    Py_BEGIN_ALLOW_THREADS core.ofp_request_spin(request->handle, KEEPS_LOOP);
    Py_END_ALLOW_THREADS result = request_poll(request);
    if (result != NOT_YET)
        waiter->poller->idle_spins = 0;
    return result;
}

/* Have the request tell. SETTLED: it is here. */
static int start_waiter(struct waiter *waiter)
{
    struct request *request = waiter->request;
    struct source *source;
    int result;

    if (!request->watchers && !(request->watchers = PyList_New(0)))
        return RAISED;
    if (PyList_Append(request->watchers, (PyObject *)waiter) != 0)
        return RAISED;
    source = poller_waiter_add(waiter->poller, request);
    if (!source) {
        remove_watcher(request, waiter);
        return RAISED;
    }
    register_waiter(waiter, source);
    result = notifier_request_register(waiter->notifier, request);
    /* Another thread may have settled it meanwhile. */
    return result == NOT_YET && !waiter->source ? request_poll(request) : result;
}

/* `await` goes on: the result, or another wait. */
PySendResult waiter_send(PyObject *self, PyObject *Py_UNUSED(value), PyObject **result)
{
    struct waiter *waiter = (struct waiter *)self;
    int state;

    *result = NULL;
    waiter->woken = 0;
    deregister_waiter(waiter);
    state = spin_for_request(waiter);
    if (state == NOT_YET)
        state = start_waiter(waiter);
    if (state == NOT_YET) {
        waiter->is_blocking = 1;
        Py_INCREF(self);
        *result = self;
        return PYGEN_NEXT;
    }
    deregister_waiter(waiter);
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
 * Cancellation is exact for receives: who is cancelled and was the last one takes it back, so that either nothing was
 * received, and a message that was already taken hold of goes back to its place, or the request has finished and still
 * says what came. A send goes on.
 */
bool cancel_receive(struct waiter *waiter)
{
    PyObject *answer;

    if (waiter->ends_at_event || !waiter->is_registered || waiter->request->waiter_count != 1)
        return true;
    answer = PyObject_CallMethod((PyObject *)waiter->request, "_withdraw", NULL);
    Py_XDECREF(answer);
    return answer != NULL;
}

/* The task goes on. False with an exception, which asyncio lets out of a task only when the loop is to end. */
bool resume_task(struct waiter *waiter)
{
    PyObject *callback = waiter->callback, *context = waiter->context, *answer;

    waiter->callback = waiter->context = NULL;
    waiter->woken = 0;
    if (!callback)
        return true;
    if (context && context != Py_None)
        answer = PyObject_CallMethod(context, "run", "OO", callback, (PyObject *)waiter);
    else
        answer = PyObject_CallFunctionObjArgs(callback, (PyObject *)waiter, NULL);
    Py_XDECREF(context);
    Py_DECREF(callback);
    Py_XDECREF(answer);
    return answer != NULL;
}
