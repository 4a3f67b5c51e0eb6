/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a Python object to a segment (region, offset, length), for the kinds of memory that most programs pass. All other kinds
 * are left to ofipy._memory, in Python.
 */
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include "memory/memory.h"

#include <numpy/arrayobject.h>

/* From this size on it pays to find out whether an array lies in memory of domain.empty, which the provider moves faster. */
#define ALLOCATION_LOOKUP_SIZE 4096

/* Load numpy's C interface: 0, or -1 with an exception, which numpy's own macro would print. */
static int load_interface(void) { return PyArray_API ? 0 : _import_array(); }

/* Whether an import of the module has ended. The name of what numpy's extension is in is another in numpy 1 and 2. */
static bool is_numpy_imported(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *numpy = modules ? PyDict_GetItemString(modules, "numpy") : NULL;
    PyObject *spec = numpy ? PyObject_GetAttrString(numpy, "__spec__") : NULL;
    PyObject *initializing = spec ? PyObject_GetAttrString(spec, "_initializing") : NULL;
    bool imported = initializing && PyObject_IsTrue(initializing) == 0;

    PyErr_Clear();
    Py_XDECREF(initializing);
    Py_XDECREF(spec);
    return imported;
}

/*
 * numpy is imported by programs that use arrays, and ofipy imports it for none that does not: no value is an array before
 * numpy is there. Its interface is loaded by imports. These must not wait for the thread that imports numpy, which may wait
 * for this one. False without an exception: numpy is not there yet, or its interface cannot be used, and ofipy._memory
 * handles the value.
 */
static bool load_numpy(void)
{
    if (!is_numpy_imported())
        return false;
    if (load_interface() == 0)
        return true;
    PyErr_Clear();
    return false;
}

static inline bool is_numpy_loaded(void) { return PyArray_API || load_numpy(); }

static inline bool is_array(PyObject *object) { return is_numpy_loaded() && PyArray_CheckExact(object); }

static bool get_number_attribute(PyObject *object, const char *name, uint64_t *number)
{
    PyObject *attribute = PyObject_GetAttrString(object, name);

    if (!attribute)
        return false;
    *number = PyLong_AsUnsignedLongLong(attribute);
    Py_DECREF(attribute);
    return !PyErr_Occurred();
}

/*
 * How often any domain has freed memory of domain.empty: after that another region can have the same address.
 * GIL: guards it.
 */
static uint64_t free_count;

const char memory_frees_count_doc[] = "memory_freed(): forget which memory of domain.empty was used last";
PyObject *memory_frees_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    free_count++;
    Py_RETURN_NONE;
}

/*
 * If the memory was allocated by domain.empty, replace the address by region and offset; no error otherwise. False: the
 * call of Python failed. The last answer is stored, and valid until such memory is freed.
 */
static bool resolve_allocation(struct segment_finder *finder, struct ofp_segment *segment)
{
    uint64_t address = segment->offset, number, start, free_count_then;
    PyObject *found;
    bool known = true;

    if (finder->found_address == address && finder->found_segment.length == segment->length &&
        finder->found_at_free_count == free_count) {
        *segment = finder->found_segment;
        return true;
    }
    /* Read before the call: memory that is freed during the call makes the answer invalid. */
    free_count_then = free_count;
    found = PyObject_CallFunction(finder->find_allocation, "KK", (unsigned long long)address,
                                  (unsigned long long)segment->length);
    if (found && found != Py_None) {
        known = get_number_attribute(found, "number", &number) && get_number_attribute(found, "address", &start);
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
    finder->found_address = address;
    finder->found_at_free_count = free_count_then;
    finder->found_segment = *segment;
    return true;
}

/*
 * If the array owns memory with a region of its own, replace the address by region and offset. The answer is not stored: the
 * region lives as long as the array, and nothing here would notice the end of the array.
 */
static void resolve_owned_region(const struct segment_finder *finder, PyObject *array, struct ofp_segment *segment)
{
    unsigned long long address = segment->offset, length = segment->length, offset;
    PyObject *found = PyObject_CallFunction(finder->find_owned, "OKK", array, address, length);
    unsigned int number;

    if (found && found != Py_None && PyArg_ParseTuple(found, "IK", &number, &offset)) {
        segment->region = number;
        segment->offset = offset;
    }
    Py_XDECREF(found);
    PyErr_Clear();
}

/* The flags are read each time, so that an array that became read-only after its last use is refused. */
static bool fill_array_segment(struct segment_finder *finder, PyObject *object, bool writable,
                               struct ofp_segment *segment)
{
    PyArrayObject *array = (PyArrayObject *)object;
    npy_intp size = PyArray_NBYTES(array);

    /* Strided, read-only, or of Python objects: the general function in Python splits it, or raises the error. */
    if (!PyArray_IS_C_CONTIGUOUS(array) || (writable && !PyArray_ISWRITEABLE(array)) ||
        PyDataType_REFCHK(PyArray_DESCR(array)))
        return false;
    segment->offset = (uint64_t)(uintptr_t)PyArray_DATA(array);
    segment->length = (uint64_t)size;
    segment->region = OFP_REGION_PROCESS;
    if (size < ALLOCATION_LOOKUP_SIZE)
        return true;
    if (PyList_Size(finder->allocation_starts) > 0 && !resolve_allocation(finder, segment))
        return false;
    if (segment->region == OFP_REGION_PROCESS && segment->length > finder->owned_above)
        resolve_owned_region(finder, object, segment);
    return true;
}

static bool copy_region_segment(PyObject *region, struct ofp_segment *segment)
{
    PyObject *address = PyObject_GetAttrString(region, "_segment");
    const void *pointer = address ? PyLong_AsVoidPtr(address) : NULL;

    if (pointer)
        *segment = *(const struct ofp_segment *)pointer;
    Py_XDECREF(address);
    return pointer != NULL;
}

/* The segment of the last region is stored. If the region was closed since, the core refuses its number. */
static bool fill_region_segment(struct segment_finder *finder, PyObject *region, struct ofp_segment *segment)
{
    if (region != finder->last_region) {
        PyObject *domain = PyObject_GetAttrString(region, "_domain");
        bool own = domain == finder->domain;

        Py_XDECREF(domain);
        if (!own || !copy_region_segment(region, &finder->last_region_segment)) {
            PyErr_Clear();
            return false;
        }
        replace_object(&finder->last_region, region);
    }
    *segment = finder->last_region_segment;
    return true;
}

static bool fill_bytearray_segment(PyObject *buffer, struct ofp_segment *segment, struct buffer_reference *reference)
{
    if (PyObject_GetBuffer(buffer, &reference->view, PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        return false;
    }
    segment->offset = (uint64_t)(uintptr_t)reference->view.buf;
    segment->length = (uint64_t)reference->view.len;
    segment->region = OFP_REGION_PROCESS;
    return true;
}

bool memory_segment_fill(struct segment_finder *finder, PyObject *buffer, bool writable, struct ofp_segment *segment,
                         struct buffer_reference *reference)
{
    bool filled;

    /* A program without arrays sends bytes, for which nobody looks for numpy. */
    if (!PyBytes_CheckExact(buffer) && is_array(buffer)) {
        filled = fill_array_segment(finder, buffer, writable, segment);
    } else if ((PyObject *)Py_TYPE(buffer) == memory_python.Region) {
        filled = fill_region_segment(finder, buffer, segment);
    } else if (PyBytes_CheckExact(buffer) && !writable) {
        segment->offset = (uint64_t)(uintptr_t)PyBytes_AsString(buffer);
        segment->length = (uint64_t)PyBytes_Size(buffer);
        segment->region = OFP_REGION_PROCESS;
        filled = true;
    } else {
        /* The export keeps the bytearray alive, and prevents it from being resized. */
        return PyByteArray_CheckExact(buffer) && fill_bytearray_segment(buffer, segment, reference);
    }
    if (filled) {
        Py_INCREF(buffer);
        reference->owner = buffer;
    }
    return filled;
}

/* Reference the array and its layout, and name the layout in the operation. */
static bool fill_array_layout(PyArrayObject *array, bool writable, struct ofp_operation *op,
                              struct buffer_reference *reference)
{
    struct strided_memory memory = {
        .address = (uint64_t)(uintptr_t)PyArray_DATA(array),
        .length = (uint64_t)PyArray_NBYTES(array),
        .element_size = (uint64_t)PyArray_ITEMSIZE(array),
        .rank = PyArray_NDIM(array),
        .shape = PyArray_DIMS(array),
        .strides = PyArray_STRIDES(array),
    };
    PyObject *layout;

    if (!memory.length || PyArray_IS_C_CONTIGUOUS(array) || (writable && !PyArray_ISWRITEABLE(array)) ||
        PyDataType_REFCHK(PyArray_DESCR(array)))
        return false;
    layout = memory_layout_create(&memory);
    reference->owner = layout ? PyTuple_Pack(2, (PyObject *)array, layout) : NULL;
    Py_XDECREF(layout);
    if (!reference->owner)
        return false;
    op->segments = (uint64_t)(uintptr_t)PyBytes_AsString(layout);
    op->segment_count = OFP_LAYOUT;
    op->length = memory.length;
    return true;
}

bool memory_layout_fill(PyObject *buffer, bool writable, struct ofp_operation *op, struct buffer_reference *reference)
{
    return is_array(buffer) && fill_array_layout((PyArrayObject *)buffer, writable, op, reference);
}

/* ------------------------------------------------------------------------------------------------- operands of atomics */

uint64_t memory_get_element_size(PyObject *buffer)
{
    npy_intp size = is_array(buffer) ? PyArray_ITEMSIZE((PyArrayObject *)buffer) : 1;

    return size > 0 ? (uint64_t)size : 1;
}

/* An enum ofp_datatype, or -1 if none describes the elements. */
static int datatype_of_array(PyArrayObject *array)
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

PyObject *memory_operand_create(PyObject *value, uint8_t *datatype)
{
    PyObject *array = NULL;
    int found;

    if (is_array(value)) {
        Py_INCREF(value);
        array = value;
    } else if (is_numpy_loaded() && PyArray_IsScalar(value, Generic)) {
        array = PyArray_FromScalar(value, NULL);
    }
    found = array ? datatype_of_array((PyArrayObject *)array) : -1;
    if (found < 0)
        Py_CLEAR(array);
    *datatype = (uint8_t)found;
    return array;
}

bool memory_is_alike(PyObject *object, PyObject *other)
{
    PyArrayObject *array = (PyArrayObject *)object;

    return is_array(object) && datatype_of_array(array) == datatype_of_array((PyArrayObject *)other) &&
           PyArray_SIZE(array) == PyArray_SIZE((PyArrayObject *)other);
}

PyObject *memory_array_create(PyObject *array)
{
    return PyArray_NewLikeArray((PyArrayObject *)array, NPY_CORDER, NULL, 0);
}

PyObject *memory_result_get(PyObject *array)
{
    /* An operation that ofipy._memory prepared has an array also where no memory could be had to load the interface. */
    if (load_interface() != 0)
        return NULL;
    Py_INCREF(array);
    return PyArray_Return((PyArrayObject *)array);
}
