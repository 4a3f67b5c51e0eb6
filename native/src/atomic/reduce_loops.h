/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of one kernel, included once for each datatype. The including file first defines
 *   KERNEL, TYPE                 the function, and the C type of an element
 *   ADD, MULTIPLY                on two elements
 *   IS_TRUE, TRUTH               an element as a truth value, a truth value as an element
 *   LESSER, GREATER              where the type has an order; the first one if both are equal
 *   WITH_BITS                    where the type has bitwise operations
 * KERNEL and TYPE are undefined again at the end. Elements go through memcpy because they may lie at any address; it
 * keeps compilers from no vector instruction.
 */
#define EACH(VALUE)                                                                                                    \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        TYPE a, b, value;                                                                                              \
                                                                                                                       \
        memcpy(&a, left + i * sizeof(a), sizeof(a));                                                                   \
        memcpy(&b, right + i * sizeof(b), sizeof(b));                                                                  \
        value = (VALUE);                                                                                               \
        memcpy(out + i * sizeof(value), &value, sizeof(value));                                                        \
    }                                                                                                                  \
    break

void KERNEL(uint32_t op, char *out, const char *left, const char *right, uint64_t count)
{
    switch (op) {
    case OFP_ATOMIC_SUM:
        EACH(ADD(a, b));
    case OFP_ATOMIC_PROD:
        EACH(MULTIPLY(a, b));
    case OFP_ATOMIC_LOR:
        EACH(TRUTH(IS_TRUE(a) || IS_TRUE(b)));
    case OFP_ATOMIC_LAND:
        EACH(TRUTH(IS_TRUE(a) && IS_TRUE(b)));
    case OFP_ATOMIC_LXOR:
        EACH(TRUTH(IS_TRUE(a) != IS_TRUE(b)));
#ifdef LESSER
    case OFP_ATOMIC_MIN:
        EACH(LESSER(a, b));
    case OFP_ATOMIC_MAX:
        EACH(GREATER(a, b));
#endif
#ifdef WITH_BITS
    case OFP_ATOMIC_BOR:
        EACH(a | b);
    case OFP_ATOMIC_BAND:
        EACH(a & b);
    case OFP_ATOMIC_BXOR:
        EACH(a ^ b);
#endif
    default:
        break;
    }
}

#undef EACH
#undef KERNEL
#undef TYPE
