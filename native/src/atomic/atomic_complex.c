/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on complex numbers, with C's arithmetic: a product with an infinite factor is infinite. Complex numbers have
 * no order. The result of a logical operation is 0 or 1 in the real part, and 0 in the imaginary part.
 */
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "ofipy/atomics.h"

#define ADD(a, b) ((a) + (b))
#define SUBTRACT(a, b) ((a) - (b))
#define MULTIPLY(a, b) ((a) * (b))
#define EQUAL(a, b) ((a) == (b))
#define IS_TRUE(a) ((a) != 0)
#define TRUTH(truth) (truth)

#define KERNEL ofpi_atomic_float_complex
#define TYPE float _Complex
#define WORD uint64_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_double_complex
#define TYPE double _Complex
#include "atomic/atomic_loops.h"
