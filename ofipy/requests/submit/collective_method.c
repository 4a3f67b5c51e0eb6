/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods of groups that start a collective. A call with plain arguments goes to the core from here; all others are passed
 * on to the general function in Python, which knows every argument.
 *
 * Python may run a signal handler after a call of C, before the caller has the request. The collective goes on then, as that of
 * every request that is deleted: the other members rely on it.
 */
#include "submit/collective.h"

/* Parameters that a method has beside its buffers. */
enum { HAS_OP = 1, HAS_ROOT = 2 };

/* GIL: guards the table and the names below, which are written when the class is created. */
struct collective_method {
    PyMethodDef method;
    uint32_t kind;
    int buffers;    /* parameters `a` and `into` */
    int parameters; /* HAS_… */
    PyObject *name; /* owned */
    struct general_function general;
};

#define METHODS(X)                                                                                                     \
    X(barrier, BARRIER, 0, 0)                                                                                          \
    X(broadcast, BROADCAST, 1, HAS_ROOT)                                                                               \
    X(reduce, REDUCE, 2, HAS_OP | HAS_ROOT)                                                                            \
    X(allreduce, ALLREDUCE, 2, HAS_OP)                                                                                 \
    X(gather, GATHER, 2, HAS_ROOT)                                                                                     \
    X(scatter, SCATTER, 2, HAS_ROOT)                                                                                   \
    X(allgather, ALLGATHER, 2, 0)                                                                                      \
    X(alltoall, ALLTOALL, 2, 0)                                                                                        \
    X(reduce_scatter, REDUCE_SCATTER, 2, HAS_OP)                                                                       \
    X(scan, SCAN, 2, HAS_OP)                                                                                           \
    X(exscan, EXSCAN, 2, HAS_OP)

#define DECLARE(name, ...)                                                                                             \
    static PyObject *name##_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
METHODS(DECLARE)

#define INDEX(name, ...) INDEX_##name,
enum { METHODS(INDEX) METHOD_COUNT };

#define ROW(python_name, kind_name, buffer_count, parameter_flags)                                                     \
    {.method = {#python_name, (PyCFunction)(void (*)(void))python_name##_start, METH_FASTCALL | METH_KEYWORDS, NULL},  \
     .kind = OFP_COLLECTIVE_##kind_name,                                                                               \
     .buffers = (buffer_count),                                                                                        \
     .parameters = (parameter_flags)},
static struct collective_method methods[] = {METHODS(ROW)};

/* Interned, so that pointers can be compared; owned. */
static PyObject *name_place, *name_into, *name_op, *name_root;

/* --------------------------------------------------------------------------------------------------------- arguments */

struct method_arguments {
    PyObject *a, *into; /* borrowed; None: none */
    uint32_t root;
    uint32_t op;
};

static bool convert_root(PyObject *number, const struct group_place *place, uint32_t *root)
{
    unsigned long value = PyLong_CheckExact(number) ? PyLong_AsUnsignedLong(number) : place->size;

    if (value == (unsigned long)-1 && PyErr_Occurred())
        PyErr_Clear();
    *root = (uint32_t)value;
    return value < place->size;
}

/* The core refuses an operation that is no reduction. */
static bool convert_op(PyObject *name, uint32_t *op)
{
    PyObject *number = NULL;

    if (PyUnicode_CheckExact(name) || (PyObject *)Py_TYPE(name) == submit_python.AtomicOp)
        number = PyDict_GetItemWithError(submit_python.ATOMIC_OPS, name);
    if (!number) {
        PyErr_Clear();
        return false;
    }
    *op = (uint32_t)PyLong_AsUnsignedLong(number);
    return true;
}

/* Find the plain arguments; false if there are others. */
static bool parse_arguments(const struct collective_method *method, const struct group_place *place,
                            PyObject *const *arguments, Py_ssize_t count, PyObject *names,
                            struct method_arguments *parsed)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;

    if (count > method->buffers || (method->buffers && !count))
        return false;
    *parsed = (struct method_arguments){
        .a = count > 0 ? arguments[0] : Py_None, .into = count > 1 ? arguments[1] : Py_None, .op = OFP_ATOMIC_SUM};
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *value = arguments[count + i];

        if (name == name_into && method->buffers == 2 && count == 1)
            parsed->into = value;
        else if (name == name_op && method->parameters & HAS_OP) {
            if (!convert_op(value, &parsed->op))
                return false;
        } else if (name == name_root && method->parameters & HAS_ROOT) {
            if (!convert_root(value, place, &parsed->root))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------- who gives, and who gets */

/* The buffers of collectives with a root: all give to it, or it gives to all. False: the arguments are not plain. */
static bool plan_rooted_call(struct plain_call *call, const struct group_place *place,
                             const struct method_arguments *parsed)
{
    bool is_root = place->rank == parsed->root;
    PyObject *target = parsed->into == Py_None ? parsed->a : parsed->into;

    switch (call->kind) {
    case OFP_COLLECTIVE_BROADCAST:
        call->target = call->returned = parsed->a;
        call->is_written = !is_root;
        return true;
    case OFP_COLLECTIVE_REDUCE:
        call->source = parsed->a;
        call->target = target;
        call->returned = is_root ? target : Py_None;
        call->is_written = is_root;
        return true;
    case OFP_COLLECTIVE_GATHER:
        call->source = parsed->a;
        call->target = call->returned = is_root ? target : Py_None;
        call->target_blocks = is_root ? place->size : 1;
        return parsed->into != parsed->a;
    default: /* SCATTER */
        call->source = is_root ? parsed->a : Py_None;
        call->source_blocks = is_root ? place->size : 1;
        call->target = call->returned = target;
        /* In place the root writes nothing. */
        call->is_written = target != call->source;
        return parsed->into != parsed->a && (is_root ? target != Py_None : parsed->into != Py_None);
    }
}

/* Fill in a call: who gives what, and where results go. False: the arguments are not plain. */
static bool plan_call(struct plain_call *call, const struct collective_method *method, const struct group_place *place,
                      const struct method_arguments *parsed)
{
    PyObject *target = parsed->into == Py_None ? parsed->a : parsed->into;

    if (parsed->a == Py_None && method->buffers && method->kind != OFP_COLLECTIVE_SCATTER)
        return false;
    *call = (struct plain_call){.kind = method->kind,
                                .root = parsed->root,
                                .op = method->parameters & HAS_OP ? parsed->op : 0,
                                .reduces = method->parameters & HAS_OP,
                                .is_written = true,
                                .source = Py_None,
                                .target = Py_None,
                                .source_blocks = 1,
                                .target_blocks = 1,
                                .returned = Py_None};
    if (method->parameters & HAS_ROOT)
        return plan_rooted_call(call, place, parsed);
    call->source = parsed->a;
    call->target = call->returned = target;
    switch (method->kind) {
    case OFP_COLLECTIVE_ALLGATHER:
        call->target_blocks = place->size;
        return parsed->into != parsed->a;
    case OFP_COLLECTIVE_ALLTOALL:
        call->source_blocks = call->target_blocks = place->size;
        return true;
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        call->source_blocks = place->size;
        return parsed->into != parsed->a;
    default: /* BARRIER, ALLREDUCE, SCAN, EXSCAN */
        return true;
    }
}

/* -------------------------------------------------------------------------------------------------------------- methods */

/* A request, or None for the general function; NULL with an exception. */
static PyObject *start_plain_method(const struct collective_method *method, PyObject *self, PyObject *const *arguments,
                                    Py_ssize_t count, PyObject *names)
{
    PyObject *place = PyObject_GetAttr(self, name_place), *result = NULL;
    struct method_arguments parsed;
    struct plain_call call;

    if (!place)
        return NULL;
    /* None: the group does not have its members yet. */
    if (Py_TYPE(place) == group_place_type &&
        parse_arguments(method, (struct group_place *)place, arguments, count, names, &parsed) &&
        plan_call(&call, method, (struct group_place *)place, &parsed)) {
        result = plain_collective_start((struct group_place *)place, self, method->name, &call);
    } else {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    Py_DECREF(place);
    return result;
}

static PyObject *start_method(const struct collective_method *method, PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names)
{
    PyObject *result = start_plain_method(method, self, arguments, count, names);

    if (result != Py_None)
        return result;
    Py_DECREF(result);
    return general_function_call(method->general.function, self, arguments, count, names);
}

#define START(name, ...)                                                                                               \
    static PyObject *name##_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)       \
    {                                                                                                                  \
        return start_method(&methods[INDEX_##name], self, arguments, count, names);                                    \
    }
METHODS(START)

static bool create_names(void)
{
    if (name_root)
        return true;
    return (name_place = PyUnicode_InternFromString("_place")) && (name_into = PyUnicode_InternFromString("into")) &&
           (name_op = PyUnicode_InternFromString("op")) && (name_root = PyUnicode_InternFromString("root"));
}

const char collective_method_create_doc[] =
    "collective(class, name, function, text) -> method of the class that starts a collective; `function` takes what is not plain, "
    "`text` is the method's signature and documentation";
PyObject *collective_method_create(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *name, *function, *text;
    struct collective_method *method = methods;

    if (!PyArg_ParseTuple(arguments, "O!UOU", &PyType_Type, &type, &name, &function, &text) || !create_names())
        return NULL;
    while (PyUnicode_CompareWithASCIIString(name, method->method.ml_name) != 0)
        if (++method == methods + METHOD_COUNT)
            return PyErr_Format(PyExc_ValueError, "no collective: %U", name);
    replace_object(&method->name, name);
    return general_method_create((PyTypeObject *)type, &method->method, &method->general, function, text);
}
