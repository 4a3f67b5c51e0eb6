/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting. A poster's methods take the endpoint for the request that they make; they return None where the arguments are
 * not the plain ones that they know, or the core refuses them: then nothing was started, and the general way in Python
 * starts it or says what is wrong.
 */
#include "memory/memory.h"
#include "requests.h"

#include <errno.h>

/* How a post ended that made no request: neither a handle nor an error of the core. */
#define UNPOSTED INT64_MIN

/* 1 yes, 0 no, -1 with an exception. */
static int is_loop_running(void)
{
    PyObject *answer = PyObject_CallNoArgs(hooks.loop_is_running);
    int running = answer ? PyObject_IsTrue(answer) : -1;

    Py_XDECREF(answer);
    return running;
}

/* What runs between two rounds of waiting: signal handlers and the log. */
static int handle_interruptions(void)
{
    PyObject *drained;

    if (PyErr_CheckSignals() != 0)
        return -1;
    if (!core.ofp_log_waiting())
        return 0;
    drained = PyObject_CallNoArgs(hooks.drain_log);
    Py_XDECREF(drained);
    return drained ? 0 : -1;
}

static ofp_request_t start_operation_without_gil(struct ofp_endpoint *endpoint, const struct ofp_operation *op,
                                                 uint32_t how, int64_t timeout)
{
    ofp_request_t result;

    Py_BEGIN_ALLOW_THREADS result = core.ofp_request_start(endpoint, op, how, timeout);
    Py_END_ALLOW_THREADS return result;
}

/* Wait for room; a thread with an event loop never does: what exceeds the queue waits in the core. */
static ofp_request_t start_operation_with_space(struct ofp_endpoint *endpoint, const struct ofp_operation *op,
                                                int64_t timeout)
{
    int64_t deadline = timeout < 0 ? INT64_MAX : get_time_ns() + timeout, left = timeout;
    ofp_request_t result;
    int loop = is_loop_running();

    if (loop)
        return loop < 0 ? UNPOSTED : start_operation_without_gil(endpoint, op, OFP_START_BEYOND, 0);
    for (;;) {
        result = start_operation_without_gil(endpoint, op, 0, left);
        if (result != -EAGAIN && result != -EINTR)
            return result;
        /* The core waits for a second at most, so that signal handlers run. */
        if (handle_interruptions() != 0)
            return UNPOSTED;
        if (timeout >= 0 && (left = deadline - get_time_ns()) <= 0)
            return -ETIMEDOUT;
    }
}

static ofp_request_t start_operation(struct poster *poster, const struct ofp_operation *op, int64_t timeout)
{
    struct ofp_endpoint *endpoint = poster->pointer;
    ofp_request_t result;

    if (__builtin_expect(poster->orphans != NULL, 0))
        orphans_sweep(poster, false);
    /* So little is posted sooner than the interpreter's lock is let go of and taken again. */
    if (op->length <= COPIED_AT_ONCE && !op->segment_count)
        result = core.ofp_request_start(endpoint, op, OFP_START_AT_ONCE, 0);
    else
        result = start_operation_without_gil(endpoint, op, 0, 0);
    /* -ENOLCK: another thread is in the domain. Nobody waits for it with the interpreter's lock held. */
    return result == -EAGAIN || result == -ENOLCK ? start_operation_with_space(endpoint, op, timeout) : result;
}

/* The request for the next post: the spare one, which lets a send that is over at once make none. */
static struct request *pop_spare_request(struct poster *poster, PyObject *type)
{
    PyObject *spare = poster->spare_request;

    if (spare && type == hooks.Request) {
        poster->spare_request = NULL;
        return (struct request *)spare;
    }
    return request_allocate((PyTypeObject *)type);
}

static PyObject *complete_finished_post(struct poster *poster, struct request *request, PyObject *type,
                                        const struct ofp_operation *op, struct buffer_reference *reference)
{
    buffer_reference_release(reference);
    if (type == hooks.FetchRequest) {
        request->op = op->op;
        request->has_result = 1;
        return (PyObject *)request;
    }
    if (type == hooks.Request && !poster->spare_request)
        poster->spare_request = (PyObject *)request;
    else
        Py_DECREF((PyObject *)request);
    Py_INCREF(hooks.COMPLETED);
    return hooks.COMPLETED;
}

PyObject *poster_operation_post(struct poster *poster, PyObject *endpoint, PyObject *type,
                                const struct ofp_operation *op, int64_t timeout, enum kind kind,
                                struct buffer_reference *reference)
{
    /* Before the post: whatever exception comes up behind it, an object has the handle and the buffer. */
    struct request *request = pop_spare_request(poster, type);
    ofp_request_t handle = UNPOSTED;

    if (request)
        handle = start_operation(poster, op, timeout);
    if (handle > 0) {
        request_operation_attach(request, poster, endpoint, handle, op, reference);
        request->kind = (char)kind;
        return (PyObject *)request;
    }
    if (handle == 0)
        return complete_finished_post(poster, request, type, op, reference);
    Py_XDECREF((PyObject *)request);
    buffer_reference_release(reference);
    return handle == UNPOSTED ? NULL : PyLong_FromLongLong(handle);
}

/* ------------------------------------------------------------------------------------------------ the plain arguments */

static bool convert_to_uint64(PyObject *number, uint64_t *result)
{
    if (!PyLong_CheckExact(number))
        return false;
    *result = PyLong_AsUnsignedLongLong(number);
    if (*result != UINT64_MAX || !PyErr_Occurred())
        return true;
    PyErr_Clear();
    return false;
}

bool poster_peer_resolve(struct poster *poster, PyObject *peer, uint32_t *number)
{
    PyObject *vector;
    unsigned long value;

    if (peer == poster->last_peer) {
        *number = poster->last_peer_number;
        return true;
    }
    if (!PyLong_CheckExact(peer)) {
        vector = PyLong_Check(peer) ? PyObject_GetAttrString(peer, "_vector") : NULL;
        Py_XDECREF(vector);
        if (!vector || vector != poster->vector) {
            PyErr_Clear();
            return false;
        }
    }
    value = PyLong_AsUnsignedLong(peer);
    if (value > UINT32_MAX) {
        PyErr_Clear();
        return false;
    }
    *number = (uint32_t)value;
    if (!PyLong_CheckExact(peer)) {
        replace_object(&poster->last_peer, peer);
        poster->last_peer_number = *number;
    }
    return true;
}

PyObject *poster_error_discard(PyObject *result)
{
    if (result && PyLong_CheckExact(result)) {
        Py_DECREF(result);
        Py_RETURN_NONE;
    }
    return result;
}

bool poster_arguments_convert(struct poster *poster, PyObject *peer, PyObject *tag, struct ofp_operation *op)
{
    return (peer == Py_None || poster_peer_resolve(poster, peer, &op->peer)) &&
           (!tag || convert_to_uint64(tag, &op->tag));
}

PyObject *poster_buffer_post(struct poster *poster, PyObject *endpoint, PyObject *buffer, struct ofp_operation *op)
{
    bool receives = op->op == OFP_TRECV || op->op == OFP_RECV;
    struct ofp_segment segment;
    struct buffer_reference reference = {0};

    if (!poster->pointer || !memory_segment_fill(poster, buffer, receives, &segment, &reference))
        Py_RETURN_NONE;
    op->offset = segment.offset;
    op->length = segment.length;
    op->region = segment.region;
    return poster_error_discard(poster_operation_post(poster, endpoint, hooks.Request, op, -1, PLAIN, &reference));
}

PyDoc_STRVAR(trecv_doc, "trecv(endpoint, buffer, peer or None, tag) -> Request or None");
static PyObject *post_trecv(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    struct ofp_operation op = {.op = OFP_TRECV, .peer = OFP_PEER_ANY};

    if (count != 4 || !poster_arguments_convert(poster, arguments[2], arguments[3], &op))
        Py_RETURN_NONE;
    return poster_buffer_post(poster, arguments[0], arguments[1], &op);
}

/* ------------------------------------------------------------------------------------------------------ the general way */

/* A record as Python makes it. */
static bool copy_record(PyObject *buffer, struct ofp_operation *op)
{
    Py_buffer view;
    bool fits;

    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) != 0)
        return false;
    fits = view.len == (Py_ssize_t)sizeof(*op);
    if (fits)
        memcpy(op, view.buf, sizeof(*op));
    else
        PyErr_SetString(PyExc_ValueError, "not one record");
    PyBuffer_Release(&view);
    return fits;
}

PyDoc_STRVAR(start_doc,
             "start(endpoint, type, kind, record, keep, nanoseconds) -> Request, COMPLETED, or the core's error");
static PyObject *start_record(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *record, *owner;
    struct buffer_reference reference = {0};
    struct ofp_operation op;
    long long timeout;
    int kind;

    if (!PyArg_ParseTuple(arguments, "OOiOOL", &endpoint, &type, &kind, &record, &owner, &timeout) ||
        !copy_record(record, &op))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    Py_INCREF(owner);
    reference.owner = owner;
    return poster_operation_post(poster, endpoint, type, &op, timeout, (enum kind)kind, &reference);
}

PyDoc_STRVAR(prepare_doc, "prepare(endpoint, type, record, keep) -> Request, or the core's error");
static PyObject *prepare_record(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type, *record, *owner;
    struct request *request;
    struct buffer_reference reference = {0};
    struct ofp_operation op;
    ofp_request_t handle;

    if (!PyArg_ParseTuple(arguments, "OOOO", &endpoint, &type, &record, &owner) || !copy_record(record, &op))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    handle = core.ofp_prepare(poster->pointer, &op);
    if (handle < 0) {
        Py_DECREF((PyObject *)request);
        return PyLong_FromLongLong(handle);
    }
    Py_INCREF(owner);
    reference.owner = owner;
    request_operation_attach(request, poster, endpoint, handle, &op, &reference);
    request->kind = PREPARED;
    request->is_delivered = 1;
    return (PyObject *)request;
}

PyDoc_STRVAR(adopt_doc, "adopt(endpoint, type, handle, peer) -> Request of an operation without memory");
static PyObject *adopt_handle(PyObject *self, PyObject *arguments)
{
    PyObject *endpoint, *type;
    struct ofp_operation op = {0};
    struct request *request;
    struct buffer_reference nothing = {0};
    long long handle;

    if (!PyArg_ParseTuple(arguments, "OOLI", &endpoint, &type, &handle, &op.peer))
        return NULL;
    request = request_allocate((PyTypeObject *)type);
    if (request)
        request_operation_attach(request, (struct poster *)self, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}

static ofp_request_t request_connection(struct ofp_endpoint *endpoint, uint32_t peer, uint64_t patience)
{
    ofp_request_t handle;

    Py_BEGIN_ALLOW_THREADS handle = core.ofp_reach_request(endpoint, peer, patience);
    Py_END_ALLOW_THREADS return handle;
}

PyDoc_STRVAR(reach_doc,
             "reach(endpoint, type, peer, nanoseconds) -> Request that ends when the peer is connected, or error");
static PyObject *connect_peer(PyObject *self, PyObject *arguments)
{
    struct poster *poster = (struct poster *)self;
    PyObject *endpoint, *type;
    struct ofp_operation op = {0};
    struct request *request;
    struct buffer_reference nothing = {0};
    unsigned long long patience;
    ofp_request_t handle;

    if (!PyArg_ParseTuple(arguments, "OOIK", &endpoint, &type, &op.peer, &patience))
        return NULL;
    if (!poster->pointer)
        return PyLong_FromLong(-ECANCELED);
    request = request_allocate((PyTypeObject *)type);
    if (!request)
        return NULL;
    handle = request_connection(poster->pointer, op.peer, patience);
    if (handle < 0) {
        Py_DECREF((PyObject *)request);
        return PyLong_FromLongLong(handle);
    }
    request_operation_attach(request, poster, endpoint, handle, &op, &nothing);
    return (PyObject *)request;
}

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static PyObject *poster_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"pointer", "domain", "vector", "find", "starts", "own", "own_above", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *domain, *vector, *find_allocation, *allocation_starts, *find_owned;
    unsigned long long pointer, owned_above;
    struct poster *poster;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KOOOO!OK", names, &pointer, &domain, &vector,
                                     &find_allocation, &PyList_Type, &allocation_starts, &find_owned, &owned_above))
        return NULL;
    poster = (struct poster *)allocate(type, 0);
    if (!poster)
        return NULL;
    poster->pointer = (struct ofp_endpoint *)(uintptr_t)pointer;
    replace_object(&poster->domain, domain);
    replace_object(&poster->vector, vector);
    replace_object(&poster->find_allocation, find_allocation);
    replace_object(&poster->allocation_starts, allocation_starts);
    replace_object(&poster->find_owned, find_owned);
    poster->owned_above = owned_above;
    return (PyObject *)poster;
}

static int poster_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct poster *poster = (struct poster *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(poster->domain);
    Py_VISIT(poster->vector);
    Py_VISIT(poster->find_allocation);
    Py_VISIT(poster->allocation_starts);
    Py_VISIT(poster->find_owned);
    Py_VISIT(poster->last_peer);
    Py_VISIT(poster->last_region);
    Py_VISIT(poster->spare_request);
    Py_VISIT(poster->successor);
    return 0;
}

static int poster_clear(PyObject *self)
{
    struct poster *poster = (struct poster *)self;

    Py_CLEAR(poster->domain);
    Py_CLEAR(poster->vector);
    Py_CLEAR(poster->last_peer);
    Py_CLEAR(poster->last_region);
    Py_CLEAR(poster->spare_request);
    Py_CLEAR(poster->successor);
    return 0;
}

static void poster_dealloc(PyObject *self)
{
    struct poster *poster = (struct poster *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    orphans_free(poster);
    poster_clear(self);
    Py_CLEAR(poster->find_allocation);
    Py_CLEAR(poster->allocation_starts);
    Py_CLEAR(poster->find_owned);
    release(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(close_doc,
             "close(heir): what it stands for is closed; what still runs, of an alias, is the heir's; or None");
static PyObject *close_poster(PyObject *self, PyObject *successor)
{
    struct poster *poster = (struct poster *)self;

    poster->pointer = NULL;
    Py_CLEAR(poster->last_peer);
    Py_CLEAR(poster->last_region);
    if (Py_TYPE(successor) == poster_type) {
        replace_object(&poster->successor, successor);
        orphans_move(poster, (struct poster *)successor);
    } else {
        orphans_free(poster);
    }
    Py_RETURN_NONE;
}

static PyMethodDef poster_methods[] = {
    {"trecv", (PyCFunction)(void (*)(void))post_trecv, METH_FASTCALL, trecv_doc},
    {"rma", (PyCFunction)(void (*)(void))poster_rma_post, METH_FASTCALL, poster_rma_post_doc},
    {"atomic", (PyCFunction)(void (*)(void))poster_atomic_post, METH_FASTCALL, poster_atomic_post_doc},
    {"start", start_record, METH_VARARGS, start_doc},
    {"prepare", prepare_record, METH_VARARGS, prepare_doc},
    {"adopt", adopt_handle, METH_VARARGS, adopt_doc},
    {"reach", connect_peer, METH_VARARGS, reach_doc},
    {"close", close_poster, METH_O, close_doc},
    {0},
};

static PyType_Slot poster_slots[] = {
    {Py_tp_doc, (void *)"Posts the operations of one endpoint, alias or receive context."},
    {Py_tp_new, poster_new},
    {Py_tp_traverse, poster_traverse},
    {Py_tp_clear, poster_clear},
    {Py_tp_dealloc, poster_dealloc},
    {Py_tp_methods, poster_methods},
    {0},
};

static PyType_Spec poster_spec = {
    .name = "ofipy._requests.Poster",
    .basicsize = sizeof(struct poster),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = poster_slots,
};

PyObject *poster_type_create(PyObject *module) { return PyType_FromModuleAndSpec(module, &poster_spec, NULL); }
