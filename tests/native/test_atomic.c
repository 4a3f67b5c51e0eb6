/* SPDX-License-Identifier: BSD-3-Clause */
/* Every valid combination of the executor against the formulas of fi_atomic(3), computed in wider types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "atomic/atomic.h"

enum { OPS = 20, SAMPLES = 8, TRIPLES = SAMPLES * SAMPLES * SAMPLES };
enum { I = 'i', U = 'u', F = 'f', C = 'c' };

static const struct type {
    uint32_t number;
    char family;
    unsigned size;
} types[] = {
    {OFP_INT8, I, 1},    {OFP_UINT8, U, 1},         {OFP_INT16, I, 2},           {OFP_UINT16, U, 2}, {OFP_INT32, I, 4},
    {OFP_UINT32, U, 4},  {OFP_INT64, I, 8},         {OFP_UINT64, U, 8},          {OFP_FLOAT, F, 4},  {OFP_DOUBLE, F, 8},
    {OFP_FLOAT16, F, 2}, {OFP_FLOAT_COMPLEX, C, 8}, {OFP_DOUBLE_COMPLEX, C, 16},
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* By operation: the calls (Base, Fetch, Compare) and the families of types that take it. */
static const struct {
    const char *calls, *families;
} matrix[OPS] = {
    [OFP_ATOMIC_MIN] = {"BF", "iuf"},     [OFP_ATOMIC_MAX] = {"BF", "iuf"},      [OFP_ATOMIC_SUM] = {"BF", "iufc"},
    [OFP_ATOMIC_PROD] = {"BF", "iufc"},   [OFP_ATOMIC_LOR] = {"BF", "iufc"},     [OFP_ATOMIC_LAND] = {"BF", "iufc"},
    [OFP_ATOMIC_BOR] = {"BF", "iu"},      [OFP_ATOMIC_BAND] = {"BF", "iu"},      [OFP_ATOMIC_LXOR] = {"BF", "iufc"},
    [OFP_ATOMIC_BXOR] = {"BF", "iu"},     [OFP_ATOMIC_READ] = {"F", "iufc"},     [OFP_ATOMIC_WRITE] = {"BF", "iufc"},
    [OFP_ATOMIC_CSWAP] = {"C", "iufc"},   [OFP_ATOMIC_CSWAP_NE] = {"C", "iufc"}, [OFP_ATOMIC_CSWAP_LE] = {"C", "iuf"},
    [OFP_ATOMIC_CSWAP_LT] = {"C", "iuf"}, [OFP_ATOMIC_CSWAP_GE] = {"C", "iuf"},  [OFP_ATOMIC_CSWAP_GT] = {"C", "iuf"},
    [OFP_ATOMIC_MSWAP] = {"C", "iu"},     [OFP_ATOMIC_DIFF] = {"BF", "iufc"},
};

static bool expect_valid(uint32_t code, uint32_t op, const struct type *type)
{
    const char *call = code == OFP_ATOMIC ? "B" : code == OFP_FETCH_ATOMIC ? "F" : "C";

    return strpbrk(matrix[op].calls, call) && strchr(matrix[op].families, type->family);
}

static void test_the_matrix(void **state)
{
    (void)state;
    for (uint32_t code = OFP_ATOMIC; code <= OFP_COMPARE_ATOMIC; code++)
        for (uint32_t op = 0; op < OPS; op++)
            for (int t = 0; t < TYPES; t++)
                assert_int_equal(ofpi_atomic_is_valid(code, op, types[t].number), expect_valid(code, op, &types[t]));
    for (int t = 0; t < TYPES; t++)
        assert_int_equal(ofpi_datatype_get_size(types[t].number), types[t].size);
}

/* Numbers that a peer may have made up; 12 to 15 are libfabric's types that are left out. */
static void test_invalid_numbers_touch_nothing(void **state)
{
    static const uint32_t bad_types[] = {12, 13, 14, 15, 17, 255, 256, UINT32_MAX};
    static const uint32_t bad_codes[] = {0, OFP_WRITE, OFP_COMPARE_ATOMIC + 1, UINT32_MAX};
    static const uint32_t bad_ops[] = {OPS, 255, 256, UINT32_MAX};
    uint64_t target = 5, in = 7, result = 9;

    (void)state;
    for (size_t i = 0; i < sizeof(bad_types) / sizeof(bad_types[0]); i++) {
        assert_int_equal(ofpi_datatype_get_size(bad_types[i]), 0);
        assert_false(ofpi_atomic_is_valid(OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, bad_types[i]));
        assert_int_equal(
            ofpi_atomic_execute(OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, bad_types[i], &target, &in, &in, &result, 1),
            -EOPNOTSUPP);
    }
    for (size_t i = 0; i < sizeof(bad_codes) / sizeof(bad_codes[0]); i++)
        assert_int_equal(ofpi_atomic_execute(bad_codes[i], OFP_ATOMIC_SUM, OFP_UINT64, &target, &in, &in, &result, 1),
                         -EOPNOTSUPP);
    for (size_t i = 0; i < sizeof(bad_ops) / sizeof(bad_ops[0]); i++)
        assert_int_equal(ofpi_atomic_execute(OFP_FETCH_ATOMIC, bad_ops[i], OFP_UINT64, &target, &in, &in, &result, 1),
                         -EOPNOTSUPP);
    assert_int_equal(target, 5);
    assert_int_equal(result, 9);
}

/* A value of any type, wide enough for all of them. */
struct value {
    __int128 integer;
    double re, im;
};

static const struct value samples[3][SAMPLES] = {
    {{.integer = 0},
     {.integer = 1},
     {.integer = -1},
     {.integer = 7},
     {.integer = -100},
     {.integer = INT64_MAX},
     {.integer = INT64_MIN},
     {.integer = 0x5a5a5a5a5a5a5a5a}},
    {{.re = 0}, {.re = -0.0}, {.re = 1}, {.re = -1.5}, {.re = 3}, {.re = 0.25}, {.re = INFINITY}, {.re = NAN}},
    {{.re = 0},
     {.re = -0.0, .im = 0},
     {.re = 1},
     {.im = 1},
     {.re = 1, .im = 2},
     {.re = -2, .im = 0.5},
     {.re = 3, .im = -1},
     {.re = NAN, .im = 1}},
};

static const struct value *samples_of(const struct type *type)
{
    return samples[type->family == F ? 1 : type->family == C ? 2 : 0];
}

/* The value that the type's bits hold, of the integer's low ones. */
static __int128 wrap(__int128 integer, const struct type *type)
{
    __int128 modulus = (__int128)1 << 8 * type->size, low = integer & (modulus - 1);

    return type->family == I && low >= modulus / 2 ? low - modulus : low;
}

/* Exact for the halves of this test: 11 significant bits, no subnormals. */
static uint16_t half_of(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = signbit(value) ? 0x8000 : 0;

    if (isnan(value))
        return 0x7e00;
    if (isinf(value))
        return sign | 0x7c00;
    if (value == 0)
        return sign;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((unsigned)ldexp(fraction, 11) & 0x3ff));
}

static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                      : ldexp(fraction, -24);

    return copysign(magnitude, half & 0x8000 ? -1 : 1);
}

static void put(char *at, const struct type *type, struct value value)
{
    double wide[2] = {value.re, value.im};
    float narrow[2] = {(float)value.re, (float)value.im};
    uint16_t half = half_of(value.re);

    if (type->family == I || type->family == U)
        memcpy(at, &value.integer, type->size); /* little-endian: the low bytes */
    else if (type->size == 2)
        memcpy(at, &half, 2);
    else if (type->number == OFP_FLOAT || type->number == OFP_FLOAT_COMPLEX)
        memcpy(at, narrow, type->size);
    else
        memcpy(at, wide, type->size);
}

static struct value get(const char *at, const struct type *type)
{
    struct value value = {0};
    double wide[2] = {0};
    float narrow[2] = {0};
    uint16_t half;

    if (type->family == I || type->family == U) {
        memcpy(&value.integer, at, type->size);
        value.integer = wrap(value.integer, type);
    } else if (type->size == 2) {
        memcpy(&half, at, 2);
        value.re = half_value(half);
    } else if (type->number == OFP_FLOAT || type->number == OFP_FLOAT_COMPLEX) {
        memcpy(narrow, at, type->size);
        value.re = narrow[0];
        value.im = narrow[1];
    } else {
        memcpy(wide, at, type->size);
        value.re = wide[0];
        value.im = wide[1];
    }
    return value;
}

static bool same_double(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && (signbit(a) != 0) == (signbit(b) != 0);
}

static bool same(struct value a, struct value b)
{
    return a.integer == b.integer && same_double(a.re, b.re) && same_double(a.im, b.im);
}

static struct value truth(const struct type *type, bool value)
{
    return type->family == I || type->family == U ? (struct value){.integer = value} : (struct value){.re = value};
}

static struct value swapped_if(bool condition, struct value in, struct value old) { return condition ? in : old; }

/* What the manual's formula leaves at the target: `old` is addr[i], `in` buf[i], `with` compare[i]. */
static struct value expected(uint32_t op, const struct type *type, struct value old, struct value in, struct value with)
{
    bool whole = type->family == I || type->family == U, is_old = old.integer || old.re != 0 || old.im != 0,
         is_in = in.integer || in.re != 0 || in.im != 0;
    struct value result = {0};

    switch (op) {
    case OFP_ATOMIC_MIN:
        return swapped_if(whole ? in.integer < old.integer : in.re < old.re, in, old);
    case OFP_ATOMIC_MAX:
        return swapped_if(whole ? in.integer > old.integer : in.re > old.re, in, old);
    case OFP_ATOMIC_SUM:
        result = (struct value){old.integer + in.integer, old.re + in.re, old.im + in.im};
        break;
    case OFP_ATOMIC_DIFF:
        result = (struct value){old.integer - in.integer, old.re - in.re, old.im - in.im};
        break;
    case OFP_ATOMIC_PROD:
        result.integer = (__int128)((unsigned __int128)old.integer * (unsigned __int128)in.integer);
        result.re = type->family == C ? old.re * in.re - old.im * in.im : old.re * in.re;
        result.im = type->family == C ? old.re * in.im + old.im * in.re : 0;
        break;
    case OFP_ATOMIC_LOR:
        return truth(type, is_old || is_in);
    case OFP_ATOMIC_LAND:
        return truth(type, is_old && is_in);
    case OFP_ATOMIC_LXOR:
        return truth(type, is_old != is_in);
    case OFP_ATOMIC_BOR:
        result.integer = old.integer | in.integer;
        break;
    case OFP_ATOMIC_BAND:
        result.integer = old.integer & in.integer;
        break;
    case OFP_ATOMIC_BXOR:
        result.integer = old.integer ^ in.integer;
        break;
    case OFP_ATOMIC_READ:
        return old;
    case OFP_ATOMIC_WRITE:
        return in;
    case OFP_ATOMIC_CSWAP:
        return swapped_if(with.integer == old.integer && with.re == old.re && with.im == old.im, in, old);
    case OFP_ATOMIC_CSWAP_NE:
        return swapped_if(with.integer != old.integer || with.re != old.re || with.im != old.im, in, old);
    case OFP_ATOMIC_CSWAP_LE:
        return swapped_if(whole ? with.integer <= old.integer : with.re <= old.re, in, old);
    case OFP_ATOMIC_CSWAP_LT:
        return swapped_if(whole ? with.integer < old.integer : with.re < old.re, in, old);
    case OFP_ATOMIC_CSWAP_GE:
        return swapped_if(whole ? with.integer >= old.integer : with.re >= old.re, in, old);
    case OFP_ATOMIC_CSWAP_GT:
        return swapped_if(whole ? with.integer > old.integer : with.re > old.re, in, old);
    case OFP_ATOMIC_MSWAP:
        result.integer = (in.integer & with.integer) | (old.integer & ~with.integer);
        break;
    default:
        fail_msg("no operation %u", op);
    }
    if (whole)
        result.integer = wrap(result.integer, type);
    return result;
}

/* Vectors of every triple of samples, one byte off any alignment and longer than a page for the wider types. */
struct vectors {
    char target[TRIPLES * 16 + 1], before[TRIPLES * 16 + 1], in[TRIPLES * 16 + 1], with[TRIPLES * 16 + 1],
        result[TRIPLES * 16 + 1];
};

static void fill(struct vectors *v, const struct type *type)
{
    const struct value *from = samples_of(type);

    for (unsigned i = 0; i < TRIPLES; i++) {
        put(v->target + 1 + i * type->size, type, from[i % SAMPLES]);
        put(v->in + 1 + i * type->size, type, from[i / SAMPLES % SAMPLES]);
        put(v->with + 1 + i * type->size, type, from[i / SAMPLES / SAMPLES]);
    }
    memcpy(v->before, v->target, sizeof(v->before));
    memset(v->result, 0x77, sizeof(v->result));
}

static void check(struct vectors *v, uint32_t code, uint32_t op, const struct type *type)
{
    static char untouched[sizeof(v->result)];

    memset(untouched, 0x77, sizeof(untouched));
    for (unsigned i = 0; i < TRIPLES; i++) {
        unsigned at = 1 + i * type->size;
        struct value old = get(v->before + at, type), in = get(v->in + at, type), with = get(v->with + at, type);

        if (!same(get(v->target + at, type), expected(op, type, old, in, with)))
            fail_msg("code %u, operation %u, type %u, triple %u", code, op, type->number, i);
    }
    assert_memory_equal(v->result + 1, code == OFP_ATOMIC ? untouched : v->before + 1, TRIPLES * type->size);
}

static void test_every_combination(void **state)
{
    struct vectors *v = malloc(sizeof(*v));

    (void)state;
    assert_non_null(v);
    for (uint32_t code = OFP_ATOMIC; code <= OFP_COMPARE_ATOMIC; code++)
        for (uint32_t op = 0; op < OPS; op++)
            for (int t = 0; t < TYPES; t++) {
                bool compares = code == OFP_COMPARE_ATOMIC;

                if (!expect_valid(code, op, &types[t]))
                    continue;
                fill(v, &types[t]);
                assert_int_equal(ofpi_atomic_execute(
                                     code, op, types[t].number, v->target + 1, op == OFP_ATOMIC_READ ? NULL : v->in + 1,
                                     compares ? v->with + 1 : NULL, code == OFP_ATOMIC ? NULL : v->result + 1, TRIPLES),
                                 0);
                check(v, code, op, &types[t]);
            }
    free(v);
}

static uint16_t half_result(uint32_t op, uint16_t target, uint16_t operand)
{
    assert_int_equal(ofpi_atomic_execute(OFP_ATOMIC, op, OFP_FLOAT16, &target, &operand, NULL, NULL, 1), 0);
    return target;
}

static void test_halves_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x3c00, 0x1000), 0x3c00);  /* 1 + 2^-11: halfway, to even */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x3c01, 0x1000), 0x3c02);  /* halfway, to even */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x3c00, 0x1001), 0x3c01);  /* a little more */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x7bff, 0x4bff), 0x7bff);  /* 65504 + 15.99: below halfway */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x7bff, 0x4c00), 0x7c00);  /* 65504 + 16: infinity */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x0001, 0x0001), 0x0002);  /* subnormals */
    assert_int_equal(half_result(OFP_ATOMIC_SUM, 0x03ff, 0x0001), 0x0400);  /* to the smallest normal number */
    assert_int_equal(half_result(OFP_ATOMIC_DIFF, 0x0400, 0x0001), 0x03ff); /* and back */
    assert_int_equal(half_result(OFP_ATOMIC_PROD, 0x0003, 0x3800), 0x0002); /* 1.5 units: halfway, to even */
    assert_int_equal(half_result(OFP_ATOMIC_PROD, 0x0001, 0x3800), 0x0000); /* half a unit: halfway, to even */
    assert_int_equal(half_result(OFP_ATOMIC_PROD, 0x8001, 0x3800), 0x8000); /* with its sign */
    assert_int_equal(half_result(OFP_ATOMIC_WRITE, 0, 0x7d55), 0x7d55);     /* a signalling NaN keeps its bits */
}

static void test_an_infinite_complex_factor_stays_infinite(void **state)
{
    double target[2] = {INFINITY, NAN}, in[2] = {1, 1};

    (void)state;
    assert_int_equal(ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_PROD, OFP_DOUBLE_COMPLEX, target, in, NULL, NULL, 1),
                     0);
    assert_true(isinf(target[0]) || isinf(target[1]));
}

/* Memory that a peer may only read stays unwritten even by what does not replace a value. */
static void test_what_replaces_nothing_writes_nothing(void **state)
{
    uint64_t zero = 0, one = 1, result = 7;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(ofpi_atomic_execute(OFP_FETCH_ATOMIC, OFP_ATOMIC_READ, OFP_UINT64, page, NULL, NULL, &result, 1),
                     0);
    assert_int_equal(result, 0);
    assert_int_equal(
        ofpi_atomic_execute(OFP_COMPARE_ATOMIC, OFP_ATOMIC_CSWAP, OFP_UINT64, page, &one, &one, &result, 1), 0);
    assert_int_equal(ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_MIN, OFP_UINT64, page, &zero, NULL, NULL, 1), 0);
    munmap(page, 4096);
}

static void test_the_result_may_replace_the_operand(void **state)
{
    uint32_t target[] = {10, 20, 30}, both[] = {1, 2, 3}, in[] = {5, 5, 5};

    (void)state;
    assert_int_equal(ofpi_atomic_execute(OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT32, target, both, NULL, both, 3), 0);
    assert_memory_equal(target, ((uint32_t[]){11, 22, 33}), sizeof(target));
    assert_memory_equal(both, ((uint32_t[]){10, 20, 30}), sizeof(both));
    both[1] = 22;
    assert_int_equal(ofpi_atomic_execute(OFP_COMPARE_ATOMIC, OFP_ATOMIC_CSWAP, OFP_UINT32, target, in, both, both, 3),
                     0);
    assert_memory_equal(target, ((uint32_t[]){11, 5, 33}), sizeof(target));
    assert_memory_equal(both, ((uint32_t[]){11, 22, 33}), sizeof(both));
}

static void test_an_empty_vector_is_nothing(void **state)
{
    (void)state;
    assert_int_equal(ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_INT32, NULL, NULL, NULL, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_matrix),
        cmocka_unit_test(test_invalid_numbers_touch_nothing),
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_halves_round_to_nearest_even),
        cmocka_unit_test(test_an_infinite_complex_factor_stays_infinite),
        cmocka_unit_test(test_what_replaces_nothing_writes_nothing),
        cmocka_unit_test(test_the_result_may_replace_the_operand),
        cmocka_unit_test(test_an_empty_vector_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
