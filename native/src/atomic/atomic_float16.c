/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on IEEE 754 half precision. Not every compiler that builds the core has a type for it, so an element is
 * stored as 16 bits and computed as float. The result is rounded correctly: a float has at least two significant bits
 * more than twice those of a half, so rounding twice, to float and then to half, has the same result as rounding once.
 */
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "ofipy/atomics.h"

#define HALF_INFINITY 0x7c00u
#define HALF_QUIET 0x0200u
#define FLOAT_INFINITY 0x7f800000u
/* The exponents of float and half have biases of 127 and 15; the fractions have 23 and 10 bits. */
#define BIAS_DIFFERENCE (127u - 15u)
#define FRACTION_DIFFERENCE 13u

static float convert_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu, bits;
    float value;

    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = exponent == 0x1f ? FLOAT_INFINITY : (exponent + BIAS_DIFFERENCE) << 23;
    bits |= sign | fraction << FRACTION_DIFFERENCE;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/*
 * Below 2^-14 a half is a multiple of 2^-24. So is every float from 0.5 to 1: adding 0.5 rounds the magnitude to such a
 * multiple.
 */
static uint32_t convert_to_subnormal(float magnitude)
{
    float sum = magnitude + 0.5f, half = 0.5f;
    uint32_t sum_bits, half_bits;

    memcpy(&sum_bits, &sum, sizeof(sum_bits));
    memcpy(&half_bits, &half, sizeof(half_bits));
    return sum_bits - half_bits;
}

/* Rounds to nearest, ties to even. */
static uint16_t convert_float_to_half(float value)
{
    uint32_t bits, sign, result;

    memcpy(&bits, &value, sizeof(bits));
    sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > FLOAT_INFINITY) {
        result = HALF_INFINITY | HALF_QUIET | (bits >> FRACTION_DIFFERENCE & 0x3ffu);
    } else if (bits >= 0x477ff000u) { /* 65520 and more: beyond the largest half, 65504, by half a step */
        result = HALF_INFINITY;
    } else if (bits < 0x38800000u) { /* 2^-14 */
        memcpy(&value, &bits, sizeof(value));
        result = convert_to_subnormal(value);
    } else {
        bits += (1u << (FRACTION_DIFFERENCE - 1)) - 1 + (bits >> FRACTION_DIFFERENCE & 1u);
        result = (bits - (BIAS_DIFFERENCE << 23)) >> FRACTION_DIFFERENCE;
    }
    return (uint16_t)(sign | result);
}

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
