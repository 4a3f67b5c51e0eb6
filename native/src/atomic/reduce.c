/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of valid reductions. */
#include "atomic/reduce.h"

#include "atomic/reduce_kernels.h"
#include "base/check.h"
#include "ofipy/collective.h"

static const struct {
    uint8_t size; /* bytes; 0: no such type */
    bool has_bits, has_order;
    ofpi_reduce_kernel *kernel;
} reduced_types[] = {
    [OFP_INT8] = {1, true, true, ofpi_reduce_int8},
    [OFP_UINT8] = {1, true, true, ofpi_reduce_uint8},
    [OFP_INT16] = {2, true, true, ofpi_reduce_int16},
    [OFP_UINT16] = {2, true, true, ofpi_reduce_uint16},
    [OFP_INT32] = {4, true, true, ofpi_reduce_int32},
    [OFP_UINT32] = {4, true, true, ofpi_reduce_uint32},
    [OFP_INT64] = {8, true, true, ofpi_reduce_int64},
    [OFP_UINT64] = {8, true, true, ofpi_reduce_uint64},
    [OFP_FLOAT] = {4, false, true, ofpi_reduce_float},
    [OFP_DOUBLE] = {8, false, true, ofpi_reduce_double},
    [OFP_FLOAT_COMPLEX] = {8, false, false, ofpi_reduce_float_complex},
    [OFP_DOUBLE_COMPLEX] = {16, false, false, ofpi_reduce_double_complex},
    [OFP_FLOAT16] = {2, false, true, ofpi_reduce_float16},
    [OFP_BFLOAT16] = {2, false, true, ofpi_reduce_bfloat16},
};

size_t ofpi_reduction_get_size(uint32_t datatype)
{
    return datatype < sizeof(reduced_types) / sizeof(reduced_types[0]) ? reduced_types[datatype].size : 0;
}

bool ofpi_reduction_is_valid(uint32_t op, uint32_t datatype)
{
    if (!ofpi_reduction_get_size(datatype))
        return false;
    switch (op) {
    case OFP_ATOMIC_MIN:
    case OFP_ATOMIC_MAX:
        return reduced_types[datatype].has_order;
    case OFP_ATOMIC_BOR:
    case OFP_ATOMIC_BAND:
    case OFP_ATOMIC_BXOR:
        return reduced_types[datatype].has_bits;
    case OFP_ATOMIC_SUM:
    case OFP_ATOMIC_PROD:
    case OFP_ATOMIC_LOR:
    case OFP_ATOMIC_LAND:
    case OFP_ATOMIC_LXOR:
        return true;
    default:
        return false;
    }
}

void ofpi_reduction_execute(uint32_t op, uint32_t datatype, void *out, const void *left, const void *right,
                            uint64_t count)
{
    OFPI_CHECK(ofpi_reduction_is_valid(op, datatype));
    reduced_types[datatype].kernel(op, out, left, right, count);
}

uint64_t ofp_reduction_size(uint32_t atomic_op, uint32_t datatype)
{
    return ofpi_reduction_is_valid(atomic_op, datatype) ? ofpi_reduction_get_size(datatype) : 0;
}

void ofp_reduction_execute(uint32_t atomic_op, uint32_t datatype, void *out, const void *left, const void *right,
                           uint64_t count)
{
    if (ofpi_reduction_is_valid(atomic_op, datatype))
        ofpi_reduction_execute(atomic_op, datatype, out, left, right, count);
}
