/* SPDX-License-Identifier: BSD-3-Clause */
/* For which queues the tasks of one event loop wait. What the loop does about it is in turn.c and in aio.py. */
#include "await/await.h"

struct await_python await_python;

/* GIL: guards the static variables in this file, which the first call writes. */
static PyObject *get_running_loop(void)
{
    static PyObject *function;

    if (!function) {
        PyObject *asyncio = PyImport_ImportModule("asyncio");

        function = asyncio ? PyObject_GetAttrString(asyncio, "get_running_loop") : NULL;
        Py_XDECREF(asyncio);
    }
    return function ? PyObject_CallNoArgs(function) : NULL;
}

struct poller *poller_get_running(void)
{
    static PyObject *name;
    PyObject *loop = get_running_loop(), *poller = NULL;

    if (loop && (name || (name = PyUnicode_InternFromString("_ofipy_poller")))) {
        poller = PyObject_GetAttr(loop, name);
        if (!poller && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            poller = PyObject_CallFunctionObjArgs(await_python.make_poller, loop, NULL);
        }
    }
    Py_XDECREF(loop);
    return (struct poller *)poller;
}

bool poller_can_spin(const struct poller *poller)
{
    if (poller->wake.waiting || poller->answers_left <= 0 || !poller->longest_spin ||
        poller->idle_spins >= MISSES_ENOUGH || PyList_Size(poller->wake.woken))
        return false;
    return poller->loop_ready == Py_None || PyObject_Size(poller->loop_ready) == 0;
}

/* ------------------------------------------------------------------------------------------------------------- sources */

static struct notifier *get_request_notifier(struct request *request)
{
    static PyObject *cq, *name;
    PyObject *queue, *notifier;

    if ((!cq && !(cq = PyUnicode_InternFromString("_cq"))) ||
        (!name && !(name = PyUnicode_InternFromString("_notices"))))
        return NULL;
    queue = PyObject_GetAttr(request->endpoint, cq);
    notifier = queue ? PyObject_GetAttr(queue, name) : NULL;
    Py_XDECREF(queue);
    return (struct notifier *)notifier;
}

static struct source *get_queue_source(struct poller *poller, struct notifier *notifier)
{
    struct source *source = poller->sources;

    while (source && source->notifier != notifier)
        source = source->next;
    if (source)
        return source;
    source = PyMem_Calloc(1, sizeof(*source));
    if (!source) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF((PyObject *)notifier);
    source->notifier = notifier;
    source->next = poller->sources;
    poller->sources = source;
    return source;
}

/* Whether the loop has to make a turn: in order to poll, or to arm the queue before it sleeps. */
static bool needs_loop_turn(const struct poller *poller, struct notifier *notifier)
{
    if (!poller->foreign_selector)
        return false;
    return poller->longest_spin || PyDict_Contains(poller->watched, (PyObject *)notifier) != 1 ||
           notifier_queue_arm(notifier, true) != 1;
}

struct source *poller_waiter_add(struct poller *poller, struct request *request)
{
    struct notifier *notifier = get_request_notifier(request);
    struct source *source = notifier ? get_queue_source(poller, notifier) : NULL;

    Py_XDECREF((PyObject *)notifier);
    if (!source)
        return NULL;
    source->waiting++;
    poller->wake.waiting++;
    OFP_CHECK(source->waiting <= poller->wake.waiting);
    poller->wake.had_event = 1;
    if (!poller->wake.is_scheduled && !poller->wake.is_turning && needs_loop_turn(poller, source->notifier) &&
        !wake_queue_schedule(&poller->wake)) {
        source->waiting--;
        poller->wake.waiting--;
        return NULL;
    }
    return source;
}

void poller_sources_free(struct poller *poller, bool all)
{
    struct source **place = &poller->sources, *source;

    while ((source = *place)) {
        if (source->waiting && !all) {
            place = &source->next;
            continue;
        }
        OFP_CHECK(!source->waiting);
        *place = source->next;
        Py_DECREF((PyObject *)source->notifier);
        PyMem_Free(source);
    }
}
