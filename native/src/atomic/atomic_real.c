/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on float and double, with C's arithmetic and comparisons. */
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "ofipy/atomics.h"

#define ADD(a, b) ((a) + (b))
#define SUBTRACT(a, b) ((a) - (b))
#define MULTIPLY(a, b) ((a) * (b))
#define EQUAL(a, b) ((a) == (b))
#define LESS(a, b) ((a) < (b))
#define IS_TRUE(a) ((a) != 0)
#define TRUTH(truth) (truth)

#define KERNEL ofpi_atomic_float
#define TYPE float
#define WORD uint32_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_double
#define TYPE double
#define WORD uint64_t
#include "atomic/atomic_loops.h"
