/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on IEEE 754 half precision, which is computed as float. */
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "atomic/half.h"
#include "ofipy/atomics.h"

#define ADD(a, b) convert_float_to_half(convert_half_to_float(a) + convert_half_to_float(b))
#define SUBTRACT(a, b) convert_float_to_half(convert_half_to_float(a) - convert_half_to_float(b))
#define MULTIPLY(a, b) convert_float_to_half(convert_half_to_float(a) * convert_half_to_float(b))
#define EQUAL(a, b) (convert_half_to_float(a) == convert_half_to_float(b))
#define LESS(a, b) (convert_half_to_float(a) < convert_half_to_float(b))
#define IS_TRUE(a) (convert_half_to_float(a) != 0)
#define TRUTH(truth) convert_float_to_half(truth)

#define KERNEL ofpi_atomic_float16
#define TYPE uint16_t
#define WORD uint16_t
#include "atomic/atomic_loops.h"
