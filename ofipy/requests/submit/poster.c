/* SPDX-License-Identifier: BSD-3-Clause */
/* The type of posters: its lifetime, and its methods. */
#include "submit/submit.h"

PyTypeObject *poster_type;

PyDoc_STRVAR(trecv_doc, "trecv(endpoint, buffer, peer or None, tag) -> Request or None");
static PyObject *post_trecv(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct poster *poster = (struct poster *)self;
    struct ofp_operation op = {.op = OFP_TRECV, .peer = OFP_PEER_ANY};

    if (count != 4 || !poster_arguments_convert(poster, arguments[2], arguments[3], &op))
        Py_RETURN_NONE;
    return poster_buffer_post(poster, arguments[0], arguments[1], &op);
}

/* ------------------------------------------------------------------------------------------------------------ lifetime */

static PyObject *poster_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"pointer", "owner", "domain", "vector", "find", "starts", "own", "own_above", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *owner, *domain, *vector, *find_allocation, *allocation_starts, *find_owned;
    unsigned long long pointer, owned_above;
    struct poster *poster;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KOOOOO!OK", names, &pointer, &owner, &domain, &vector,
                                     &find_allocation, &PyList_Type, &allocation_starts, &find_owned, &owned_above))
        return NULL;
    poster = (struct poster *)allocate(type, 0);
    if (!poster)
        return NULL;
    poster->pointer = (struct ofp_endpoint *)(uintptr_t)pointer;
    replace_object(&poster->owner, owner);
    replace_object(&poster->finder.domain, domain);
    replace_object(&poster->vector, vector);
    replace_object(&poster->finder.find_allocation, find_allocation);
    replace_object(&poster->finder.allocation_starts, allocation_starts);
    replace_object(&poster->finder.find_owned, find_owned);
    poster->finder.owned_above = owned_above;
    return (PyObject *)poster;
}

static int poster_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct poster *poster = (struct poster *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(poster->owner);
    Py_VISIT(poster->finder.domain);
    Py_VISIT(poster->vector);
    Py_VISIT(poster->finder.find_allocation);
    Py_VISIT(poster->finder.allocation_starts);
    Py_VISIT(poster->finder.find_owned);
    Py_VISIT(poster->last_peer);
    Py_VISIT(poster->finder.last_region);
    Py_VISIT(poster->spare_request);
    Py_VISIT(poster->orphans.successor);
    return 0;
}

static int poster_clear(PyObject *self)
{
    struct poster *poster = (struct poster *)self;

    Py_CLEAR(poster->finder.domain);
    Py_CLEAR(poster->vector);
    Py_CLEAR(poster->last_peer);
    Py_CLEAR(poster->finder.last_region);
    Py_CLEAR(poster->spare_request);
    Py_CLEAR(poster->orphans.successor);
    return 0;
}

static void poster_dealloc(PyObject *self)
{
    struct poster *poster = (struct poster *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    orphan_owner_close(&poster->orphans, NULL);
    poster_clear(self);
    Py_CLEAR(poster->finder.find_allocation);
    Py_CLEAR(poster->finder.allocation_starts);
    Py_CLEAR(poster->finder.find_owned);
    /*
     * The owner is released here and not by poster_clear: the garbage collector may clear the poster before a request, and
     * each request references its poster. The core reads the endpoint when a request with a message is abandoned.
     */
    Py_CLEAR(poster->owner);
    release(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(close_doc,
             "close(successor): the handle is closed; the poster that gets the orphans of an alias, or None");
static PyObject *close_poster(PyObject *self, PyObject *successor)
{
    struct poster *poster = (struct poster *)self;

    poster->pointer = NULL;
    Py_CLEAR(poster->last_peer);
    Py_CLEAR(poster->finder.last_region);
    orphan_owner_close(&poster->orphans, Py_TYPE(successor) == poster_type ? (struct orphan_owner *)successor : NULL);
    Py_RETURN_NONE;
}

static PyMethodDef poster_methods[] = {
    {"trecv", (PyCFunction)(void (*)(void))post_trecv, METH_FASTCALL, trecv_doc},
    {"start", poster_record_start, METH_VARARGS, poster_record_start_doc},
    {"prepare", poster_record_prepare, METH_VARARGS, poster_record_prepare_doc},
    {"adopt", poster_handle_adopt, METH_VARARGS, poster_handle_adopt_doc},
    {"collective", poster_collective_start, METH_VARARGS, poster_collective_start_doc},
    {"agreement", poster_agreement_start, METH_VARARGS, poster_agreement_start_doc},
    {"reach", poster_peer_connect, METH_VARARGS, poster_peer_connect_doc},
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

PyObject *poster_type_create(PyObject *module)
{
    poster_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &poster_spec, NULL);
    return (PyObject *)poster_type;
}
