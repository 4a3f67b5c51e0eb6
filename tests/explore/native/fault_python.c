/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps within Python: instructions of ofipy's modules, and allocations of objects. Loaded into the interpreter. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <string.h>

#include "steps.h"

/* --------------------------------------------------------------------------------------------------------- bytecodes */

static PyObject *trace_opcodes; /* "f_trace_opcodes" */

/* The function of a frame of ofipy's, as a name that lasts as long as its code; NULL: it is another module's. */
static const char *name_frame(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *name = file && strstr(file, "/ofipy/") ? PyUnicode_AsUTF8(code->co_name) : NULL;

    Py_DECREF(code);
    return name;
}

static int trace_frame(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    const char *name;

    (void)unused, (void)argument;
    if (what == PyTrace_CALL && (name = name_frame(frame))) {
        if (PyObject_SetAttr((PyObject *)frame, trace_opcodes, Py_True) != 0)
            PyErr_Clear();
    } else if (what == PyTrace_OPCODE && (name = name_frame(frame))) {
        step_reach(STEP_BYTECODE, name, NULL);
    }
    return 0;
}

/* Make each instruction of ofipy's modules in this thread a step, or no longer. Called with the GIL. */
STEP_EXPORT void step_bytecodes_trace(int on)
{
    if (!trace_opcodes)
        trace_opcodes = PyUnicode_InternFromString("f_trace_opcodes");
    PyEval_SetTrace(on ? trace_frame : NULL, NULL);
}

/* ----------------------------------------------------------------------------------------------------------- objects */

/*
 * The allocators before, for PYMEM_DOMAIN_MEM and PYMEM_DOMAIN_OBJ. What fails for good fails for the next allocations
 * alone, since without any the interpreter can do nothing.
 */
static PyMemAllocatorEx before[2];

/* A cell as the collector allocates it: two words of its own come first. */
#define CELL_SIZE (2 * sizeof(void *) + sizeof(PyCellObject))

static bool failed_cell; /* the last allocation that failed was as large as a cell; with the GIL */

static bool must_fail(const char *function, size_t size)
{
    if (step_reach(STEP_OBJECT, function, NULL).action != STEP_FAIL)
        return false;
    failed_cell = size == CELL_SIZE;
    return true;
}

STEP_EXPORT int step_objects_failed_cell(void) { return failed_cell; }

static void *allocate(void *allocator, size_t size)
{
    const PyMemAllocatorEx *real = allocator;

    return must_fail("allocate", size) ? NULL : real->malloc(real->ctx, size);
}

static void *allocate_zeroed(void *allocator, size_t count, size_t size)
{
    const PyMemAllocatorEx *real = allocator;

    return must_fail("allocate", count * size) ? NULL : real->calloc(real->ctx, count, size);
}

static void *reallocate(void *allocator, void *block, size_t size)
{
    const PyMemAllocatorEx *real = allocator;

    return must_fail("allocate", size) ? NULL : real->realloc(real->ctx, block, size);
}

static void release(void *allocator, void *block)
{
    const PyMemAllocatorEx *real = allocator;

    real->free(real->ctx, block);
}

/* Make each allocation of Python's a step. Called once, with the GIL. */
STEP_EXPORT void step_objects_count(void)
{
    const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

    for (int i = 0; i < 2; i++) {
        PyMemAllocatorEx ours = {&before[i], allocate, allocate_zeroed, reallocate, release};

        PyMem_GetAllocator(domains[i], &before[i]);
        PyMem_SetAllocator(domains[i], &ours);
    }
}
