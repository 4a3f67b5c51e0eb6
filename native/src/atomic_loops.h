/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of one kernel, included once for each datatype. Before that the file defines
 *   KERNEL, TYPE                         the function and the C type that holds an element
 *   ADD, SUBTRACT, MULTIPLY, EQUAL       of two elements
 *   IS_TRUE, TRUTH                       an element as a truth value, a truth value as an element
 *   LESS                                 where the type has an order
 *   WITH_BITS                            where it has bits to work on
 * KERNEL, TYPE are undefined again at the end; the others stay for the family's next type.
 *
 * In an expression `old` is the target's element, `in` the operand's and `with` the compare operand's. Elements go through
 * memcpy because they may lie at any address; all three are read before anything is written, so `result` may be `operand`.
 */
#define EACH(CONDITION, VALUE)                                                                                         \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        TYPE old, in, with;                                                                                            \
                                                                                                                       \
        memcpy(&old, target + i * sizeof(old), sizeof(old));                                                           \
        memcpy(&in, operand + i * sizeof(in), sizeof(in));                                                             \
        memcpy(&with, compare + i * sizeof(with), sizeof(with));                                                       \
        if (CONDITION) {                                                                                               \
            TYPE value = (VALUE);                                                                                      \
                                                                                                                       \
            memcpy(target + i * sizeof(value), &value, sizeof(value));                                                 \
        }                                                                                                              \
        if (result)                                                                                                    \
            memcpy(result + i * sizeof(old), &old, sizeof(old));                                                       \
    }                                                                                                                  \
    break

void KERNEL(uint32_t op, char *target, const char *operand, const char *compare, char *result, uint64_t count)
{
    switch (op) {
    case OFP_ATOMIC_SUM:
        EACH(true, ADD(old, in));
    case OFP_ATOMIC_DIFF:
        EACH(true, SUBTRACT(old, in));
    case OFP_ATOMIC_PROD:
        EACH(true, MULTIPLY(old, in));
    case OFP_ATOMIC_LOR:
        EACH(true, TRUTH(IS_TRUE(old) || IS_TRUE(in)));
    case OFP_ATOMIC_LAND:
        EACH(true, TRUTH(IS_TRUE(old) && IS_TRUE(in)));
    case OFP_ATOMIC_LXOR:
        EACH(true, TRUTH(IS_TRUE(old) != IS_TRUE(in)));
    case OFP_ATOMIC_READ:
        EACH(false, old);
    case OFP_ATOMIC_WRITE:
        EACH(true, in);
    case OFP_ATOMIC_CSWAP:
        EACH(EQUAL(with, old), in);
    case OFP_ATOMIC_CSWAP_NE:
        EACH(!EQUAL(with, old), in);
#ifdef LESS
    /* A comparison with NaN is false: the target stays. */
    case OFP_ATOMIC_MIN:
        EACH(LESS(in, old), in);
    case OFP_ATOMIC_MAX:
        EACH(LESS(old, in), in);
    /* The compare operand stands on the left: LE swaps where it is less than or equal to the target. */
    case OFP_ATOMIC_CSWAP_LE:
        EACH(LESS(with, old) || EQUAL(with, old), in);
    case OFP_ATOMIC_CSWAP_LT:
        EACH(LESS(with, old), in);
    case OFP_ATOMIC_CSWAP_GE:
        EACH(LESS(old, with) || EQUAL(with, old), in);
    case OFP_ATOMIC_CSWAP_GT:
        EACH(LESS(old, with), in);
#endif
#ifdef WITH_BITS
    case OFP_ATOMIC_BOR:
        EACH(true, old | in);
    case OFP_ATOMIC_BAND:
        EACH(true, old & in);
    case OFP_ATOMIC_BXOR:
        EACH(true, old ^ in);
    case OFP_ATOMIC_MSWAP:
        EACH(true, (in & with) | (old & ~with));
#endif
    default:
        break;
    }
}

#undef EACH
#undef KERNEL
#undef TYPE
