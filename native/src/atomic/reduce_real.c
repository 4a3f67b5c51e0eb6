/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of real and complex numbers. Every NaN of a result is the quiet one without sign and payload, since which
 * of two NaNs a processor returns depends on their order.
 */
#include <math.h>
#include <string.h>

#include "atomic/half.h"
#include "atomic/reduce_kernels.h"

#define HALF_NAN (HALF_INFINITY | HALF_QUIET)
#define BFLOAT_NAN 0x7fc0u

static inline float clear_nan(float value) { return value != value ? NAN : value; }
static inline double clear_nan_of_double(double value) { return value != value ? (double)NAN : value; }

/* The first operand if both are equal, so that the two zeros have an order that all members agree on. */
static inline float choose_lesser(float a, float b) { return a != a || b != b ? NAN : b < a ? b : a; }
static inline float choose_greater(float a, float b) { return a != a || b != b ? NAN : a < b ? b : a; }
static inline double choose_lesser_double(double a, double b) { return a != a || b != b ? (double)NAN : b < a ? b : a; }
static inline double choose_greater_double(double a, double b)
{
    return a != a || b != b ? (double)NAN : a < b ? b : a;
}

static inline uint16_t convert_to_half(float value)
{
    return value != value ? (uint16_t)HALF_NAN : convert_float_to_half(value);
}
static inline uint16_t convert_to_bfloat(float value)
{
    return value != value ? (uint16_t)BFLOAT_NAN : convert_float_to_bfloat(value);
}

static inline float _Complex clear_nans(float _Complex value)
{
    float parts[2];

    memcpy(parts, &value, sizeof(parts));
    parts[0] = clear_nan(parts[0]);
    parts[1] = clear_nan(parts[1]);
    memcpy(&value, parts, sizeof(value));
    return value;
}
static inline double _Complex clear_nans_of_double(double _Complex value)
{
    double parts[2];

    memcpy(parts, &value, sizeof(parts));
    parts[0] = clear_nan_of_double(parts[0]);
    parts[1] = clear_nan_of_double(parts[1]);
    memcpy(&value, parts, sizeof(value));
    return value;
}

#define IS_TRUE(a) ((a) != 0)
#define TRUTH(truth) (truth)

#define ADD(a, b) clear_nan((a) + (b))
#define MULTIPLY(a, b) clear_nan((a) * (b))
#define LESSER(a, b) choose_lesser(a, b)
#define GREATER(a, b) choose_greater(a, b)
#define KERNEL ofpi_reduce_float
#define TYPE float
#include "atomic/reduce_loops.h"
#undef ADD
#undef MULTIPLY
#undef LESSER
#undef GREATER

#define ADD(a, b) clear_nan_of_double((a) + (b))
#define MULTIPLY(a, b) clear_nan_of_double((a) * (b))
#define LESSER(a, b) choose_lesser_double(a, b)
#define GREATER(a, b) choose_greater_double(a, b)
#define KERNEL ofpi_reduce_double
#define TYPE double
#include "atomic/reduce_loops.h"
#undef ADD
#undef MULTIPLY
#undef LESSER
#undef GREATER

#define ADD(a, b) clear_nans((a) + (b))
#define MULTIPLY(a, b) clear_nans((a) * (b))
#define KERNEL ofpi_reduce_float_complex
#define TYPE float _Complex
#include "atomic/reduce_loops.h"
#undef ADD
#undef MULTIPLY

#define ADD(a, b) clear_nans_of_double((a) + (b))
#define MULTIPLY(a, b) clear_nans_of_double((a) * (b))
#define KERNEL ofpi_reduce_double_complex
#define TYPE double _Complex
#include "atomic/reduce_loops.h"
#undef ADD
#undef MULTIPLY
#undef IS_TRUE
#undef TRUTH

#define IS_TRUE(a) (convert_half_to_float(a) != 0)
#define TRUTH(truth) convert_to_half(truth)
#define ADD(a, b) convert_to_half(convert_half_to_float(a) + convert_half_to_float(b))
#define MULTIPLY(a, b) convert_to_half(convert_half_to_float(a) * convert_half_to_float(b))
#define LESSER(a, b) convert_to_half(choose_lesser(convert_half_to_float(a), convert_half_to_float(b)))
#define GREATER(a, b) convert_to_half(choose_greater(convert_half_to_float(a), convert_half_to_float(b)))
#define KERNEL ofpi_reduce_float16
#define TYPE uint16_t
#include "atomic/reduce_loops.h"
#undef IS_TRUE
#undef TRUTH
#undef ADD
#undef MULTIPLY
#undef LESSER
#undef GREATER

#define IS_TRUE(a) (convert_bfloat_to_float(a) != 0)
#define TRUTH(truth) convert_to_bfloat(truth)
#define ADD(a, b) convert_to_bfloat(convert_bfloat_to_float(a) + convert_bfloat_to_float(b))
#define MULTIPLY(a, b) convert_to_bfloat(convert_bfloat_to_float(a) * convert_bfloat_to_float(b))
#define LESSER(a, b) convert_to_bfloat(choose_lesser(convert_bfloat_to_float(a), convert_bfloat_to_float(b)))
#define GREATER(a, b) convert_to_bfloat(choose_greater(convert_bfloat_to_float(a), convert_bfloat_to_float(b)))
#define KERNEL ofpi_reduce_bfloat16
#define TYPE uint16_t
#include "atomic/reduce_loops.h"
