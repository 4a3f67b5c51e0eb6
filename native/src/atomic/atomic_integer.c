/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on integers. Sums and products wrap around, also of signed types. The processor's atomic addition computes
 * sums. Products are computed as unsigned 64-bit integers, whose low bits are right for every narrower type.
 */
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "ofipy/atomics.h"

#define MULTIPLY(a, b) (TYPE)((uint64_t)(a) * (uint64_t)(b))
#define EQUAL(a, b) ((a) == (b))
#define LESS(a, b) ((a) < (b))
#define IS_TRUE(a) ((a) != 0)
#define TRUTH(truth) (truth)
#define WITH_BITS

#define KERNEL ofpi_atomic_int8
#define TYPE int8_t
#define WORD uint8_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_uint8
#define TYPE uint8_t
#define WORD uint8_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_int16
#define TYPE int16_t
#define WORD uint16_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_uint16
#define TYPE uint16_t
#define WORD uint16_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_int32
#define TYPE int32_t
#define WORD uint32_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_uint32
#define TYPE uint32_t
#define WORD uint32_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_int64
#define TYPE int64_t
#define WORD uint64_t
#include "atomic/atomic_loops.h"

#define KERNEL ofpi_atomic_uint64
#define TYPE uint64_t
#define WORD uint64_t
#include "atomic/atomic_loops.h"
