/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops behind ofpi_atomic_execute, one function for each datatype; atomic_loops.h is their body. */
#ifndef OFPI_ATOMIC_KERNELS_H
#define OFPI_ATOMIC_KERNELS_H

#include "ofipy/types.h"

/*
 * The caller has checked `op` against the matrix. Every element of the target lies at a multiple of its size, or, of types of
 * more than 8 bytes, is nobody else's for the time. `operand` and `compare` are NULL where the operation does not look at
 * them, `result` where the old value is not wanted.
 */
typedef void ofpi_atomic_kernel(uint32_t op, char *target, const char *operand, const char *compare, char *result,
                                uint64_t count);

ofpi_atomic_kernel ofpi_atomic_int8, ofpi_atomic_uint8, ofpi_atomic_int16, ofpi_atomic_uint16;
ofpi_atomic_kernel ofpi_atomic_int32, ofpi_atomic_uint32, ofpi_atomic_int64, ofpi_atomic_uint64;
ofpi_atomic_kernel ofpi_atomic_float16, ofpi_atomic_float, ofpi_atomic_double;
ofpi_atomic_kernel ofpi_atomic_float_complex, ofpi_atomic_double_complex;

#endif
