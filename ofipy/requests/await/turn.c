/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The type of pollers. A turn of the event loop completes what the queues report and resumes the tasks, all in one callback of
 * the loop. What the loop does between two turns, polling or sleeping, is decided in Python (aio.py), since it depends on the
 * loop's own functions.
 */
#include "await/await.h"

#include <structmember.h>

/* Further queues are not polled in a spin; the arming before the loop sleeps includes them. */
#define QUEUES_PER_SPIN 16

/* A list of the notifiers of all sources with waiters: code of Python that runs during an iteration may change the sources. */
static PyObject *build_source_list(const struct poller *poller)
{
    PyObject *list = PyList_New(0);

    for (const struct source *source = poller->sources; list && source; source = source->next)
        if (source->waiting && PyList_Append(list, (PyObject *)source->notifier) != 0)
            Py_CLEAR(list);
    return list;
}

/* --------------------------------------------------------------------------------------------------------------- turns */

/*
 * Complete what the queues report: how many requests, -1 with an exception. `progress`: True to make progress on all queues, or
 * the notifier of the one queue to make progress on.
 */
static int64_t collect_completions(struct poller *poller, const PyObject *progress)
{
    PyObject *sources = build_source_list(poller);
    int64_t total = sources ? 0 : -1;

    for (Py_ssize_t i = 0; total >= 0 && i < PyList_Size(sources); i++) {
        PyObject *notifier = PyList_GetItem(sources, i);
        bool look = progress == Py_True || progress == notifier;
        int64_t count = notifier_collect((struct notifier *)notifier, look);

        /* A negative count is ignored: the queue is closed, and closing it has notified its waiters; or the process forked. */
        total = count == INT64_MIN ? -1 : total + (count > 0 ? count : 0);
    }
    Py_XDECREF(sources);
    return total;
}

/* Resume the waiters that were woken before this turn. Waiters that these tasks wake are resumed in the next turn. */
static bool resume_woken_tasks(struct poller *poller)
{
    PyObject *woken = poller->wake.woken, *next = PyList_New(0);
    Py_ssize_t i, count = PyList_Size(woken);
    bool good = true;

    if (!next)
        return false;
    poller->wake.woken = next;
    for (i = 0; good && i < count; i++)
        good = waiter_task_resume((struct waiter *)PyList_GetItem(woken, i));
    /* After an exception the rest goes in front of those that were woken meanwhile. */
    if (i < count && PyList_SetSlice(woken, 0, i, NULL) == 0)
        PyList_SetSlice(poller->wake.woken, 0, 0, woken);
    Py_DECREF(woken);
    return good;
}

/* Have the loop resume those that were woken in this turn. */
static bool schedule_next_turn(struct poller *poller)
{
    PyObject *kind, *error, *trace;
    bool good;

    if (!PyList_Size(poller->wake.woken))
        return true;
    PyErr_Fetch(&kind, &error, &trace);
    good = wake_queue_schedule(&poller->wake);
    /* An exception of a task takes precedence over one of the scheduling. */
    if (kind)
        PyErr_Restore(kind, error, trace);
    return good;
}

PyDoc_STRVAR(
    run_doc,
    "run(progress): complete what the queues report, and resume the waiters. True: after progress on all queues; "
    "Notices: on its queue");
static PyObject *run_turn(PyObject *self, PyObject *progress)
{
    struct poller *poller = (struct poller *)self;
    bool good;

    poller->answers_left = ANSWERS_PER_TURN;
    poller->wake.is_turning = 1;
    good = collect_completions(poller, progress) >= 0 && resume_woken_tasks(poller);
    poller->wake.is_turning = 0;
    poller_sources_free(poller, false);
    if (!schedule_next_turn(poller) || !good)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(spin_doc, "spin(nanoseconds) -> whether a queue has something for a turn; 0: check once");
static PyObject *spin_queues(PyObject *self, PyObject *duration)
{
    struct poller *poller = (struct poller *)self;
    unsigned long long nanoseconds = PyLong_AsUnsignedLongLong(duration);
    struct ofp_cq *queues[QUEUES_PER_SPIN];
    PyObject *sources = PyErr_Occurred() ? NULL : build_source_list(poller);
    uint32_t count = 0;
    int result = 0;

    if (!sources)
        return NULL;
    poller->answers_left = ANSWERS_PER_TURN;
    for (Py_ssize_t i = 0; i < PyList_Size(sources) && count < QUEUES_PER_SPIN; i++) {
        queues[count] = ((struct notifier *)PyList_GetItem(sources, i))->pointer;
        count += queues[count] != NULL;
    }
    if (count) {
        Py_BEGIN_ALLOW_THREADS result = core.ofp_cq_spin(queues, count, nanoseconds);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(sources);
    if (result > 0)
        poller->idle_spins = 0;
    return PyBool_FromLong(result > 0);
}

PyDoc_STRVAR(arm_all_doc, "arm_all() -> the Notices of queues that have to be read before the loop may sleep");
static PyObject *arm_queues(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *sources = build_source_list((struct poller *)self);
    PyObject *left = sources ? PyList_New(0) : NULL;

    for (Py_ssize_t i = 0; left && i < PyList_Size(sources); i++) {
        PyObject *notifier = PyList_GetItem(sources, i);

        /* An error is ignored: the queue is closed, and closing it has notified its waiters. */
        if (notifier_queue_arm((struct notifier *)notifier, false) == 0 && PyList_Append(left, notifier) != 0)
            Py_CLEAR(left);
    }
    Py_XDECREF(sources);
    return left;
}

static PyObject *get_poller_sources(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return build_source_list((struct poller *)self);
}

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static PyObject *poller_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *loop, *loop_ready, *cancelled;
    struct poller *poller;
    int foreign_selector;

    if (!PyArg_ParseTuple(arguments, "OOOp", &loop, &loop_ready, &cancelled, &foreign_selector))
        return NULL;
    poller = (struct poller *)allocate(type, 0);
    if (!poller)
        return NULL;
    replace_object(&poller->loop, loop);
    replace_object(&poller->loop_ready, loop_ready);
    replace_object(&poller->cancelled, cancelled);
    poller->foreign_selector = (char)foreign_selector;
    poller->wake.woken = PyList_New(0);
    poller->watched = PyDict_New();
    if (poller->wake.woken && poller->watched)
        return (PyObject *)poller;
    Py_DECREF((PyObject *)poller);
    return NULL;
}

static int poller_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct poller *poller = (struct poller *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(poller->loop);
    Py_VISIT(poller->loop_ready);
    Py_VISIT(poller->cancelled);
    Py_VISIT(poller->wake.woken);
    Py_VISIT(poller->watched);
    for (const struct source *source = poller->sources; source; source = source->next)
        Py_VISIT((PyObject *)source->notifier);
    return 0;
}

static int poller_clear(PyObject *self)
{
    struct poller *poller = (struct poller *)self;

    /* The other members stay: waiters that refer to this poller may still be deleted, and use them. */
    if (poller->wake.woken)
        PyList_SetSlice(poller->wake.woken, 0, PyList_Size(poller->wake.woken), NULL);
    if (poller->watched)
        PyDict_Clear(poller->watched);
    return 0;
}

static void poller_dealloc(PyObject *self)
{
    struct poller *poller = (struct poller *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    if (poller->weak_references)
        PyObject_ClearWeakRefs(self);
    poller_sources_free(poller, true);
    Py_CLEAR(poller->wake.woken);
    Py_CLEAR(poller->watched);
    Py_CLEAR(poller->loop);
    Py_CLEAR(poller->loop_ready);
    Py_CLEAR(poller->cancelled);
    release(self);
    Py_DECREF(type);
}

#define FIELD(name, type, field, flags) {name, type, offsetof(struct poller, field), flags, NULL}
static PyMemberDef poller_members[] = {
    FIELD("__weaklistoffset__", T_PYSSIZET, weak_references, READONLY),
    FIELD("waiting", T_PYSSIZET, wake.waiting, READONLY),
    FIELD("plain", T_BOOL, foreign_selector, READONLY),
    FIELD("active", T_BOOL, wake.had_event, 0),
    FIELD("scheduled", T_BOOL, wake.is_scheduled, 0),
    FIELD("misses", T_INT, idle_spins, 0),
    FIELD("longest_spin", T_LONGLONG, longest_spin, 0),
    FIELD("watched", T_OBJECT_EX, watched, READONLY),
    {0},
};

static PyMethodDef poller_methods[] = {
    {"run", run_turn, METH_O, run_doc},
    {"spin", spin_queues, METH_O, spin_doc},
    {"arm_all", arm_queues, METH_NOARGS, arm_all_doc},
    {"sources", get_poller_sources, METH_NOARGS, "The Notices of queues for which tasks wait."},
    {0},
};

static PyType_Slot poller_slots[] = {
    {Py_tp_doc,
     (void *)"PollerBase(loop, what it runs next or None, CancelledError, whether its selector is no ofipy.Selector)"},
    {Py_tp_new, poller_new},
    {Py_tp_traverse, poller_traverse},
    {Py_tp_clear, poller_clear},
    {Py_tp_dealloc, poller_dealloc},
    {Py_tp_members, poller_members},
    {Py_tp_methods, poller_methods},
    {0},
};

static PyType_Spec poller_spec = {
    .name = "ofipy._requests.PollerBase",
    .basicsize = sizeof(struct poller),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = poller_slots,
};

PyObject *poller_type_create(PyObject *module) { return PyType_FromModuleAndSpec(module, &poller_spec, NULL); }
