/* SPDX-License-Identifier: BSD-3-Clause */
/* The type of places in groups. */
#include "submit/collective.h"

PyTypeObject *group_place_type;

static PyObject *place_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"request_type", "endpoint", "poster", "address", "rank", "size", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *request_type, *endpoint, *poster;
    unsigned long long address;
    unsigned int rank, size;
    struct group_place *place;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!OO!KII", names, &PyType_Type, &request_type, &endpoint,
                                     poster_type, &poster, &address, &rank, &size))
        return NULL;
    place = (struct group_place *)allocate(type, 0);
    if (!place)
        return NULL;
    replace_object(&place->request_type, request_type);
    replace_object(&place->endpoint, endpoint);
    replace_object(&place->poster, poster);
    place->group = (struct ofp_group *)(uintptr_t)address;
    place->rank = rank;
    place->size = size;
    return (PyObject *)place;
}

static int place_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct group_place *place = (struct group_place *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(place->request_type);
    Py_VISIT(place->endpoint);
    Py_VISIT(place->poster);
    return 0;
}

static void place_dealloc(PyObject *self)
{
    struct group_place *place = (struct group_place *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    Py_CLEAR(place->request_type);
    Py_CLEAR(place->endpoint);
    Py_CLEAR(place->poster);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot place_slots[] = {
    {Py_tp_doc, (void *)"Place(request_type, endpoint, poster, address, rank, size): a member's place in its group."},
    {Py_tp_new, place_new},
    {Py_tp_traverse, place_traverse},
    {Py_tp_dealloc, place_dealloc},
    {0},
};

static PyType_Spec place_spec = {
    .name = "ofipy._requests.Place",
    .basicsize = sizeof(struct group_place),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = place_slots,
};

PyObject *group_place_type_create(PyObject *module)
{
    group_place_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &place_spec, NULL);
    return (PyObject *)group_place_type;
}
