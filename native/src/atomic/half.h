/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IEEE 754 half precision, and bfloat16. Not every compiler that builds the core has types for them, so an element is
 * stored as 16 bits and computed as float. The result is rounded correctly: a float has at least two significant bits
 * more than twice those of a half, so rounding twice, to float and then to half, has the same result as rounding once.
 */
#ifndef OFPI_HALF_H
#define OFPI_HALF_H

#include <stdint.h>
#include <string.h>

#define HALF_INFINITY 0x7c00u
#define HALF_QUIET 0x0200u
#define FLOAT_INFINITY 0x7f800000u
/* The exponents of float and half have biases of 127 and 15; the fractions have 23 and 10 bits. */
#define BIAS_DIFFERENCE (127u - 15u)
#define FRACTION_DIFFERENCE 13u

static inline float convert_half_to_float(uint16_t half)
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
static inline uint32_t convert_to_subnormal(float magnitude)
{
    float sum = magnitude + 0.5f, half = 0.5f;
    uint32_t sum_bits, half_bits;

    memcpy(&sum_bits, &sum, sizeof(sum_bits));
    memcpy(&half_bits, &half, sizeof(half_bits));
    return sum_bits - half_bits;
}

/* Rounds to nearest, ties to even. */
static inline uint16_t convert_float_to_half(float value)
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

/* A bfloat16 is the upper half of a float. */
static inline float convert_bfloat_to_float(uint16_t bfloat)
{
    uint32_t bits = (uint32_t)bfloat << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Rounds to nearest, ties to even. */
static inline uint16_t convert_float_to_bfloat(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffffu) > FLOAT_INFINITY)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
