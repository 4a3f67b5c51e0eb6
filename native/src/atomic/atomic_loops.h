/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of one kernel, included once for each datatype. The including file first defines
 *   KERNEL, TYPE                         the function, and the C type of an element
 *   WORD                                 the unsigned integer of the same size, for the processor's compare-and-swap;
 *                                        not defined for types that are too large for it
 *   ADD, SUBTRACT, MULTIPLY, EQUAL       on two elements
 *   IS_TRUE, TRUTH                       an element as a truth value, a truth value as an element
 *   LESS                                 where the type has an order
 *   WITH_BITS                            where the type has bitwise operations
 * KERNEL, TYPE and WORD are undefined again at the end. The others stay defined for the file's next type.
 *
 * In an expression `old` is the target's element, `in` the operand's and `with` the compare operand's. Operands go
 * through memcpy because they may lie at any address; they are read before the result is written, so `result` may be
 * `operand`.
 */
#ifdef WORD
/* Acquire: a thread that reads a new value also reads all that its writer wrote before, as after a message. */
#define LOOK                                                                                                           \
    _Atomic WORD *word = (_Atomic WORD *)(void *)(target + i * sizeof(TYPE));                                          \
    WORD seen = ofp_load_acquire(word), next;                                                                          \
    memcpy(&old, &seen, sizeof(old))
#define REPLACED(VALUE)                                                                                                \
    (value = (VALUE), memcpy(&next, &value, sizeof(next)),                                                             \
     ofp_replace(word, &seen, next) || (memcpy(&old, &seen, sizeof(old)), false))
#else
#define LOOK memcpy(&old, target + i * sizeof(TYPE), sizeof(old))
#define REPLACED(VALUE) (value = (VALUE), memcpy(target + i * sizeof(TYPE), &value, sizeof(value)), true)
#endif

/* Repeat the compare-and-swap until VALUE was computed from the value that it replaces. */
#define EACH(CONDITION, VALUE)                                                                                         \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        TYPE old, in = 0, with = 0, value;                                                                             \
                                                                                                                       \
        if (operand)                                                                                                   \
            memcpy(&in, operand + i * sizeof(in), sizeof(in));                                                         \
        if (compare)                                                                                                   \
            memcpy(&with, compare + i * sizeof(with), sizeof(with));                                                   \
        LOOK;                                                                                                          \
        while ((CONDITION) && !REPLACED(VALUE)) {                                                                      \
        }                                                                                                              \
        if (result)                                                                                                    \
            memcpy(result + i * sizeof(old), &old, sizeof(old));                                                       \
    }                                                                                                                  \
    break

/* The processor has an atomic addition of integers, which needs no repetition when other threads update the element. */
#define EACH_ADDED(VALUE)                                                                                              \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        WORD old, in;                                                                                                  \
                                                                                                                       \
        memcpy(&in, operand + i * sizeof(in), sizeof(in));                                                             \
        old = ofp_fetch_add((_Atomic WORD *)(void *)(target + i * sizeof(in)), (WORD)(VALUE));                         \
        if (result)                                                                                                    \
            memcpy(result + i * sizeof(old), &old, sizeof(old));                                                       \
    }                                                                                                                  \
    break

void KERNEL(uint32_t op, char *target, const char *operand, const char *compare, char *result, uint64_t count)
{
    switch (op) {
#ifdef WITH_BITS
    case OFP_ATOMIC_SUM:
        EACH_ADDED(in);
    case OFP_ATOMIC_DIFF:
        EACH_ADDED(0 - in);
#else
    case OFP_ATOMIC_SUM:
        EACH(true, ADD(old, in));
    case OFP_ATOMIC_DIFF:
        EACH(true, SUBTRACT(old, in));
#endif
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
    /* A comparison with NaN is false, so the target does not change. */
    case OFP_ATOMIC_MIN:
        EACH(LESS(in, old), in);
    case OFP_ATOMIC_MAX:
        EACH(LESS(old, in), in);
    /* The compare operand is on the left side: LE swaps if the operand is less than or equal to the target. */
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
#undef EACH_ADDED
#undef LOOK
#undef REPLACED
#undef KERNEL
#undef TYPE
#undef WORD
