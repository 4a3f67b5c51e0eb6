/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops behind ofpi_atomic_execute, one function for each datatype; atomic_loops.h is their body. */
#ifndef OFPI_ATOMIC_KERNELS_H
#define OFPI_ATOMIC_KERNELS_H

#include "ofipy/types.h"

/*
 * The caller has checked that `op` is valid for the type. Elements of up to 8 bytes lie at multiples of their size. For
 * larger types, the caller ensures that no other thread uses the elements. `operand` and `compare` are NULL if the
 * operation does not use them. `result` is NULL if the caller does not need the old values.
 */
typedef void ofpi_atomic_kernel(uint32_t op, char *target, const char *operand, const char *compare, char *result,
                                uint64_t count);

ofpi_atomic_kernel ofpi_atomic_int8, ofpi_atomic_uint8, ofpi_atomic_int16, ofpi_atomic_uint16;
ofpi_atomic_kernel ofpi_atomic_int32, ofpi_atomic_uint32, ofpi_atomic_int64, ofpi_atomic_uint64;
ofpi_atomic_kernel ofpi_atomic_float16, ofpi_atomic_float, ofpi_atomic_double;
ofpi_atomic_kernel ofpi_atomic_float_complex, ofpi_atomic_double_complex;

#endif
