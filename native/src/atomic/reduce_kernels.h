/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops behind ofpi_reduction_execute, one function for each datatype; reduce_loops.h is their body. */
#ifndef OFPI_REDUCE_KERNELS_H
#define OFPI_REDUCE_KERNELS_H

#include "ofipy/types.h"

/* The caller has checked that `op` is valid for the type. */
typedef void ofpi_reduce_kernel(uint32_t op, char *out, const char *left, const char *right, uint64_t count);

ofpi_reduce_kernel ofpi_reduce_int8, ofpi_reduce_uint8, ofpi_reduce_int16, ofpi_reduce_uint16;
ofpi_reduce_kernel ofpi_reduce_int32, ofpi_reduce_uint32, ofpi_reduce_int64, ofpi_reduce_uint64;
ofpi_reduce_kernel ofpi_reduce_float16, ofpi_reduce_bfloat16, ofpi_reduce_float, ofpi_reduce_double;
ofpi_reduce_kernel ofpi_reduce_float_complex, ofpi_reduce_double_complex;

#endif
