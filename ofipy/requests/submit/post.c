/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting one operation. Locks: the domain's lock is tried while the GIL is held, and waited for only without the GIL.
 */
#include "await/await.h"
#include "submit/submit.h"

#include <errno.h>

struct submit_python submit_python;

/* The result of a post that raised an exception: neither a handle nor an error of the core. */
#define UNPOSTED INT64_MIN

static ofp_request_t start_operation_without_gil(struct ofp_endpoint *endpoint, const struct ofp_operation *op,
                                                 uint32_t how, int64_t timeout)
{
    ofp_request_t result;

    Py_BEGIN_ALLOW_THREADS result = core.ofp_request_start(endpoint, op, how, timeout);
    Py_END_ALLOW_THREADS return result;
}

/*
 * Wait for space in the transmit queue. A thread with an event loop does not wait: the core accepts some operations beyond the
 * queue's size for it.
 */
static ofp_request_t start_operation_with_space(struct ofp_endpoint *endpoint, const struct ofp_operation *op,
                                                int64_t timeout)
{
    int64_t deadline = timeout < 0 ? INT64_MAX : get_time_ns() + timeout, left = timeout;
    ofp_request_t result;
    int loop = await_loop_is_running();

    if (loop)
        return loop < 0 ? UNPOSTED : start_operation_without_gil(endpoint, op, OFP_START_BEYOND, 0);
    for (;;) {
        result = start_operation_without_gil(endpoint, op, 0, left);
        if (result != -EAGAIN && result != -EINTR)
            return result;
        /* The core waits for a second at most, so that signal handlers run here. */
        if (request_interruptions_handle() != 0)
            return UNPOSTED;
        if (timeout >= 0 && (left = deadline - get_time_ns()) <= 0)
            return -ETIMEDOUT;
    }
}

static ofp_request_t start_operation(struct poster *poster, const struct ofp_operation *op, int64_t timeout)
{
    struct ofp_endpoint *endpoint = poster->pointer;
    ofp_request_t result;

    if (__builtin_expect(poster->orphans.first != NULL, 0))
        orphan_owner_reclaim(&poster->orphans, false);
    /* Copying so few bytes takes less time than releasing and reacquiring the GIL. */
    if (op->length <= COPIED_WITH_GIL && !op->segment_count)
        result = core.ofp_request_start(endpoint, op, OFP_START_AT_ONCE, 0);
    else
        result = start_operation_without_gil(endpoint, op, 0, 0);
    /* -ENOLCK: another thread is in the domain. No thread waits for the domain while it has the GIL. */
    return result == -EAGAIN || result == -ENOLCK ? start_operation_with_space(endpoint, op, timeout) : result;
}

/* The spare request, or a new one. GIL: of two threads only one gets the spare. */
static struct request *pop_spare_request(struct poster *poster, PyObject *type)
{
    PyObject *spare = poster->spare_request;

    if (spare && type == request_python.Request) {
        poster->spare_request = NULL;
        return (struct request *)spare;
    }
    return request_allocate((PyTypeObject *)type);
}

static PyObject *complete_finished_post(struct poster *poster, struct request *request, PyObject *type,
                                        const struct ofp_operation *op, struct buffer_reference *reference)
{
    OFP_CHECK(!request->handle && !request->has_result);
    buffer_reference_release(reference);
    if (type == submit_python.FetchRequest) {
        request->op = op->op;
        request->has_result = 1;
        return (PyObject *)request;
    }
    if (type == request_python.Request && !poster->spare_request)
        poster->spare_request = (PyObject *)request;
    else
        Py_DECREF((PyObject *)request);
    Py_INCREF(request_python.COMPLETED);
    return request_python.COMPLETED;
}

PyObject *poster_operation_post(struct poster *poster, PyObject *endpoint, PyObject *type,
                                const struct ofp_operation *op, int64_t timeout, enum kind kind,
                                struct buffer_reference *reference)
{
    /* Created before the post: whatever exception follows the post, an object owns the handle and the buffer. */
    struct request *request = pop_spare_request(poster, type);
    ofp_request_t handle = UNPOSTED;

    if (request)
        handle = start_operation(poster, op, timeout);
    if (handle > 0) {
        request_operation_attach(request, &poster->orphans, endpoint, handle, op, reference);
        request->kind = (char)kind;
        return (PyObject *)request;
    }
    if (handle == 0)
        return complete_finished_post(poster, request, type, op, reference);
    Py_XDECREF((PyObject *)request);
    buffer_reference_release(reference);
    return handle == UNPOSTED ? NULL : PyLong_FromLongLong(handle);
}

/* ----------------------------------------------------------------------------------------------------- plain arguments */

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
        /* The number first: releasing the former peer may run code of the program, which may post to this one. */
        poster->last_peer_number = *number;
        replace_object(&poster->last_peer, peer);
    }
    return true;
}

PyObject *poster_none_return(void)
{
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
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
    struct buffer_reference reference = {0};

    if (!poster->pointer || !memory_operation_fill(&poster->finder, buffer, receives, op, &reference)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return poster_error_discard(
        poster_operation_post(poster, endpoint, request_python.Request, op, -1, PLAIN, &reference));
}
