/* SPDX-License-Identifier: BSD-3-Clause */
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "memory.h"

#include <numpy/arrayobject.h>

/* From this size on an array is looked up among the memory of domain.empty, which the provider moves faster. */
#define LOOKUP_SIZE 4096

int memory_import(void)
{
    import_array1(-1);
    return 0;
}

static bool number_of(PyObject *object, const char *name, uint64_t *number)
{
    PyObject *attribute = PyObject_GetAttrString(object, name);

    if (!attribute)
        return false;
    *number = PyLong_AsUnsignedLongLong(attribute);
    Py_DECREF(attribute);
    return !PyErr_Occurred();
}

/* How often a domain has freed memory of domain.empty; what lies there next is another region. */
static uint64_t freed;

const char requests_memory_freed_doc[] = "memory_freed(): forget which memory of domain.empty was used last";
PyObject *requests_memory_freed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    freed++;
    Py_RETURN_NONE;
}

/* Whether it is memory of domain.empty, as a part of its region. The last answer is remembered until some is freed. */
static bool look_up(struct poster *poster, struct ofp_segment *segment)
{
    uint64_t address = segment->offset, number, start, freed_then;
    PyObject *found;
    bool known = true;

    if (poster->found_address == address && poster->found_segment.length == segment->length &&
        poster->found_before == freed) {
        *segment = poster->found_segment;
        return true;
    }
    freed_then = freed;
    found = PyObject_CallFunction(poster->find, "KK", (unsigned long long)address, (unsigned long long)segment->length);
    if (found && found != Py_None) {
        known = number_of(found, "number", &number) && number_of(found, "address", &start);
        if (known) {
            segment->region = (uint32_t)number;
            segment->offset = address - start;
        }
    }
    Py_XDECREF(found);
    if (!found || !known) {
        PyErr_Clear();
        return false;
    }
    poster->found_address = address;
    poster->found_before = freed_then;
    poster->found_segment = *segment;
    return true;
}

/* The region of the array that owns the memory. It is asked for each time: only whoever has the array knows that it is there. */
static void look_for_owner(const struct poster *poster, PyObject *array, struct ofp_segment *segment)
{
    unsigned long long address = segment->offset, length = segment->length, offset;
    PyObject *found = PyObject_CallFunction(poster->own, "OKK", array, address, length);
    unsigned int number;

    if (found && found != Py_None && PyArg_ParseTuple(found, "IK", &number, &offset)) {
        segment->region = number;
        segment->offset = offset;
    }
    Py_XDECREF(found);
    PyErr_Clear();
}

/* Flags are read each time: an array that was made read-only since its last use is refused. */
static bool describe_array(struct poster *poster, PyObject *object, bool writable, struct ofp_segment *segment)
{
    PyArrayObject *array = (PyArrayObject *)object;
    npy_intp size = PyArray_NBYTES(array);

    /* Strided, read-only, or of Python objects: the general way takes it to pieces, or says why not. */
    if (!PyArray_IS_C_CONTIGUOUS(array) || (writable && !PyArray_ISWRITEABLE(array)) ||
        PyDataType_REFCHK(PyArray_DESCR(array)))
        return false;
    segment->offset = (uint64_t)(uintptr_t)PyArray_DATA(array);
    segment->length = (uint64_t)size;
    segment->region = OFP_REGION_PROCESS;
    if (size < LOOKUP_SIZE)
        return true;
    if (PyList_Size(poster->starts) > 0 && !look_up(poster, segment))
        return false;
    if (segment->region == OFP_REGION_PROCESS && segment->length > poster->own_above)
        look_for_owner(poster, object, segment);
    return true;
}

static bool copy_segment(PyObject *region, struct ofp_segment *segment)
{
    PyObject *address = PyObject_GetAttrString(region, "_segment");
    const void *pointer = address ? PyLong_AsVoidPtr(address) : NULL;

    if (pointer)
        *segment = *(const struct ofp_segment *)pointer;
    Py_XDECREF(address);
    return pointer != NULL;
}

/* The last region is remembered; whether it was closed since is what the core knows. */
static bool describe_region(struct poster *poster, PyObject *region, struct ofp_segment *segment)
{
    if (region != poster->region) {
        PyObject *domain = PyObject_GetAttrString(region, "_domain");
        bool own = domain == poster->domain;

        Py_XDECREF(domain);
        if (!own || !copy_segment(region, &poster->region_segment)) {
            PyErr_Clear();
            return false;
        }
        replace_object(&poster->region, region);
    }
    *segment = poster->region_segment;
    return true;
}

static bool describe_bytearray(PyObject *buffer, struct ofp_segment *segment, struct hold *hold)
{
    if (PyObject_GetBuffer(buffer, &hold->view, PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        return false;
    }
    segment->offset = (uint64_t)(uintptr_t)hold->view.buf;
    segment->length = (uint64_t)hold->view.len;
    segment->region = OFP_REGION_PROCESS;
    return true;
}

bool memory_describe(struct poster *poster, PyObject *buffer, bool writable, struct ofp_segment *segment,
                     struct hold *hold)
{
    bool described;

    if (PyArray_CheckExact(buffer)) {
        described = describe_array(poster, buffer, writable, segment);
    } else if ((PyObject *)Py_TYPE(buffer) == hooks.Region) {
        described = describe_region(poster, buffer, segment);
    } else if (PyBytes_CheckExact(buffer) && !writable) {
        segment->offset = (uint64_t)(uintptr_t)PyBytes_AsString(buffer);
        segment->length = (uint64_t)PyBytes_Size(buffer);
        segment->region = OFP_REGION_PROCESS;
        described = true;
    } else {
        /* The export of a bytearray keeps it, and from growing. */
        return PyByteArray_CheckExact(buffer) && describe_bytearray(buffer, segment, hold);
    }
    if (described) {
        Py_INCREF(buffer);
        hold->keep = buffer;
    }
    return described;
}

/* ------------------------------------------------------------------------------------------------- elements of atomics */

/* -1: there is none like it. */
static int datatype_of(PyArrayObject *array)
{
    int size = (int)PyArray_ITEMSIZE(array);
    char kind = PyArray_DESCR(array)->kind;

    if (!PyArray_ISNOTSWAPPED(array))
        return -1;
    if (kind == 'i' || kind == 'u')
        return OFP_INT8 + 2 * (size == 8 ? 3 : size / 2) + (kind == 'u');
    if (kind == 'f')
        return size == 8 ? OFP_DOUBLE : size == 4 ? OFP_FLOAT : size == 2 ? OFP_FLOAT16 : -1;
    if (kind == 'c')
        return size == 16 ? OFP_DOUBLE_COMPLEX : size == 8 ? OFP_FLOAT_COMPLEX : -1;
    return -1;
}

PyObject *memory_elements(PyObject *value, uint8_t *datatype)
{
    PyObject *array = NULL;
    int found;

    if (PyArray_CheckExact(value)) {
        Py_INCREF(value);
        array = value;
    } else if (PyArray_IsScalar(value, Generic)) {
        array = PyArray_FromScalar(value, NULL);
    }
    found = array ? datatype_of((PyArrayObject *)array) : -1;
    if (found < 0)
        Py_CLEAR(array);
    *datatype = (uint8_t)found;
    return array;
}

bool memory_is_alike(PyObject *object, PyObject *other)
{
    PyArrayObject *array = (PyArrayObject *)object;

    return PyArray_CheckExact(object) && datatype_of(array) == datatype_of((PyArrayObject *)other) &&
           PyArray_SIZE(array) == PyArray_SIZE((PyArrayObject *)other);
}

PyObject *memory_new_like(PyObject *array) { return PyArray_NewLikeArray((PyArrayObject *)array, NPY_CORDER, NULL, 0); }

PyObject *memory_result(PyObject *array)
{
    Py_INCREF(array);
    return PyArray_Return((PyArrayObject *)array);
}
