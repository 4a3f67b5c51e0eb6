/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout (ofipy/layout.h) of one strided array, in one object: struct ofp_layout, its part and its dimensions. */
#include "memory/memory.h"

/* The object holds this. `dimensions` has as many elements as the part needs. */
struct strided_layout {
    struct ofp_layout layout;
    struct ofp_layout_part part;
    struct ofp_dimension dimensions[];
};

/*
 * Fill in the dimensions around the contiguous runs, the outermost first; neighbouring dimensions that step as one are one.
 * Return their number, and the bytes of a run.
 */
static uint32_t fill_dimensions(const struct strided_memory *memory, struct ofp_dimension *dimensions, uint64_t *run)
{
    struct ofp_dimension found[OFP_RANK_MAX];
    uint32_t rank = 0;

    *run = memory->element_size;
    for (int d = memory->rank; d-- > 0;) {
        uint64_t count = (uint64_t)memory->shape[d];
        int64_t stride = memory->strides[d];
        struct ofp_dimension *last = rank ? &found[rank - 1] : NULL;

        if (count == 1)
            continue;
        if (!last && stride == (int64_t)*run)
            *run *= count;
        else if (last && stride == (int64_t)last->count * last->stride)
            last->count *= count;
        else
            found[rank++] = (struct ofp_dimension){count, stride};
    }
    for (uint32_t d = 0; d < rank; d++)
        dimensions[d] = found[rank - 1 - d];
    return rank;
}

PyObject *memory_layout_create(const struct strided_memory *memory)
{
    struct ofp_dimension dimensions[OFP_RANK_MAX];
    uint64_t run;
    uint32_t rank = memory->rank <= OFP_RANK_MAX ? fill_dimensions(memory, dimensions, &run) : 0;
    Py_ssize_t size = (Py_ssize_t)(sizeof(struct strided_layout) + rank * sizeof(*dimensions));
    PyObject *object;
    struct strided_layout *made;

    if (!rank || memory->length / run <= OFP_SEGMENT_LIMIT || !(object = PyBytes_FromStringAndSize(NULL, size)))
        return NULL;
    made = (struct strided_layout *)(void *)PyBytes_AsString(object);
    made->part =
        (struct ofp_layout_part){.address = memory->address, .run = run, .length = memory->length, .rank = rank};
    made->layout = (struct ofp_layout){.length = memory->length,
                                       .parts = (uint64_t)(uintptr_t)&made->part,
                                       .dimensions = (uint64_t)(uintptr_t)made->dimensions,
                                       .part_count = 1,
                                       .dimension_count = rank};
    memcpy(made->dimensions, dimensions, rank * sizeof(*dimensions));
    return object;
}
