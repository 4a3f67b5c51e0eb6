/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of integers. Sums and products wrap around, also of signed types. */
#include <string.h>

#include "atomic/reduce_kernels.h"

#define ADD(a, b) (TYPE)((uint64_t)(a) + (uint64_t)(b))
#define MULTIPLY(a, b) (TYPE)((uint64_t)(a) * (uint64_t)(b))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((a) < (b) ? (b) : (a))
#define IS_TRUE(a) ((a) != 0)
#define TRUTH(truth) (truth)
#define WITH_BITS

#define KERNEL ofpi_reduce_int8
#define TYPE int8_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_uint8
#define TYPE uint8_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_int16
#define TYPE int16_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_uint16
#define TYPE uint16_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_int32
#define TYPE int32_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_uint32
#define TYPE uint32_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_int64
#define TYPE int64_t
#include "atomic/reduce_loops.h"

#define KERNEL ofpi_reduce_uint64
#define TYPE uint64_t
#include "atomic/reduce_loops.h"
