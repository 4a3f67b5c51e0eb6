/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of the methods that access remote memory: its handle, and completion levels. */
#include "submit/submit.h"

static PyObject *name_rights, *name_segment; /* interned; owned */

static bool create_remote_names(void)
{
    return name_segment || ((name_rights = PyUnicode_InternFromString("_rights")) &&
                            (name_segment = PyUnicode_InternFromString("_segment")));
}

const struct ofp_remote_segment *remote_segment_find(PyObject *remote, unsigned long granted, unsigned long refused)
{
    const struct ofp_remote_segment *segment = NULL;
    PyObject *attribute, *address = NULL;
    unsigned long rights;

    if ((PyObject *)Py_TYPE(remote) != submit_python.RemoteRegion || !create_remote_names())
        return NULL;
    attribute = PyObject_GetAttr(remote, name_rights);
    rights = attribute ? PyLong_AsUnsignedLong(attribute) : 0;
    if (!PyErr_Occurred() && (rights & granted) == granted && !(rights & refused))
        address = PyObject_GetAttr(remote, name_segment);
    if (address)
        segment = PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    Py_XDECREF(attribute);
    return segment;
}

bool remote_level_convert(PyObject *level, uint64_t *flags)
{
    PyObject *found = PyDict_GetItemWithError(submit_python.COMPLETE_FLAGS, level);

    PyErr_Clear();
    if (found)
        *flags = PyLong_AsUnsignedLongLong(found);
    return found != NULL;
}
