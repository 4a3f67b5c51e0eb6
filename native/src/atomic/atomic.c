/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of valid atomic operations, and the executor, which updates each element atomically. */
#include "atomic/atomic.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "atomic/atomic_kernels.h"
#include "base/lock.h"
#include "ofipy/operation.h"

/* ----------------------------------------------------------------------------------------------------------- matrix */

enum family { INTEGER = 1, REAL = 2, COMPLEX = 4, ORDERED = INTEGER | REAL, ANY = INTEGER | REAL | COMPLEX };
enum kind { BASE = 1, FETCH = 2, COMPARE = 4, UPDATE = BASE | FETCH };

static const struct {
    uint8_t size; /* bytes; 0: no such type */
    uint8_t family;
    ofpi_atomic_kernel *kernel;
} types[] = {
    [OFP_INT8] = {1, INTEGER, ofpi_atomic_int8},
    [OFP_UINT8] = {1, INTEGER, ofpi_atomic_uint8},
    [OFP_INT16] = {2, INTEGER, ofpi_atomic_int16},
    [OFP_UINT16] = {2, INTEGER, ofpi_atomic_uint16},
    [OFP_INT32] = {4, INTEGER, ofpi_atomic_int32},
    [OFP_UINT32] = {4, INTEGER, ofpi_atomic_uint32},
    [OFP_INT64] = {8, INTEGER, ofpi_atomic_int64},
    [OFP_UINT64] = {8, INTEGER, ofpi_atomic_uint64},
    [OFP_FLOAT] = {4, REAL, ofpi_atomic_float},
    [OFP_DOUBLE] = {8, REAL, ofpi_atomic_double},
    [OFP_FLOAT_COMPLEX] = {8, COMPLEX, ofpi_atomic_float_complex},
    [OFP_DOUBLE_COMPLEX] = {16, COMPLEX, ofpi_atomic_double_complex},
    [OFP_FLOAT16] = {2, REAL, ofpi_atomic_float16},
};

/* The valid operations of each kind of call, as fi_atomic(3) lists them. Its lists omit DIFF, which is as SUM. */
static const struct {
    uint8_t families;
    uint8_t kinds;
} operations[] = {
    [OFP_ATOMIC_MIN] = {ORDERED, UPDATE},       [OFP_ATOMIC_MAX] = {ORDERED, UPDATE},
    [OFP_ATOMIC_SUM] = {ANY, UPDATE},           [OFP_ATOMIC_PROD] = {ANY, UPDATE},
    [OFP_ATOMIC_LOR] = {ANY, UPDATE},           [OFP_ATOMIC_LAND] = {ANY, UPDATE},
    [OFP_ATOMIC_BOR] = {INTEGER, UPDATE},       [OFP_ATOMIC_BAND] = {INTEGER, UPDATE},
    [OFP_ATOMIC_LXOR] = {ANY, UPDATE},          [OFP_ATOMIC_BXOR] = {INTEGER, UPDATE},
    [OFP_ATOMIC_READ] = {ANY, FETCH},           [OFP_ATOMIC_WRITE] = {ANY, UPDATE},
    [OFP_ATOMIC_CSWAP] = {ANY, COMPARE},        [OFP_ATOMIC_CSWAP_NE] = {ANY, COMPARE},
    [OFP_ATOMIC_CSWAP_LE] = {ORDERED, COMPARE}, [OFP_ATOMIC_CSWAP_LT] = {ORDERED, COMPARE},
    [OFP_ATOMIC_CSWAP_GE] = {ORDERED, COMPARE}, [OFP_ATOMIC_CSWAP_GT] = {ORDERED, COMPARE},
    [OFP_ATOMIC_MSWAP] = {INTEGER, COMPARE},    [OFP_ATOMIC_DIFF] = {ANY, UPDATE},
};

static unsigned find_atomic_kind(uint32_t operation_code)
{
    uint32_t traits = ofp_operation_row(operation_code)->traits;

    if (!(traits & OFP_ATOMIC_KIND))
        return 0;
    if (traits & OFP_COMPARES)
        return COMPARE;
    return traits & OFP_READS ? FETCH : BASE;
}

size_t ofpi_datatype_get_size(uint32_t datatype)
{
    return datatype < sizeof(types) / sizeof(types[0]) ? types[datatype].size : 0;
}

bool ofpi_atomic_is_valid(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype)
{
    if (!ofpi_datatype_get_size(datatype) || atomic_op >= sizeof(operations) / sizeof(operations[0]))
        return false;
    return operations[atomic_op].kinds & find_atomic_kind(operation_code) &&
           operations[atomic_op].families & types[datatype].family;
}

/* ------------------------------------------------------------------------------------------------------------ locks
 * For elements that the processor does not update atomically. Memory is divided into stripes, and a lock covers the
 * same stripe of every page. So the lock depends only on an address's offset in its page, and memory that is mapped
 * twice has the same locks at both addresses. An element lies in one stripe or two. Lock order: the lower index first,
 * so that there is no deadlock.
 */
#define STRIPE_SIZE 256u /* bytes: small, so that adjacent counters seldom share a lock, but large enough for vectors */
#define STRIPE_COUNT (4096u / STRIPE_SIZE)

static struct {
    alignas(64) struct ofpi_lock lock; /* a cache line each */
} stripes[STRIPE_COUNT];

static uint32_t stripe_of_address(uintptr_t address) { return address / STRIPE_SIZE % STRIPE_COUNT; }

static void lock_stripes(uint32_t one, uint32_t other)
{
    ofpi_lock_acquire(&stripes[one < other ? one : other].lock);
    if (one != other)
        ofpi_lock_acquire(&stripes[one < other ? other : one].lock);
}

static void unlock_stripes(uint32_t one, uint32_t other)
{
    ofpi_lock_release(&stripes[one].lock);
    if (one != other)
        ofpi_lock_release(&stripes[other].lock);
}

void ofpi_atomic_forked(void)
{
    for (uint32_t i = 0; i < STRIPE_COUNT; i++)
        stripes[i].lock = (struct ofpi_lock){0};
}

/* --------------------------------------------------------------------------------------------------------- executor */

/* Update elements whose stripes are locked, each in an aligned copy. */
static void update_copies(ofpi_atomic_kernel *kernel, size_t size, uint32_t op, char *at, const char *in,
                          const char *with, char *out, uint64_t count)
{
    for (uint64_t done = 0; done < count * size; done += size) {
        alignas(16) char copy[16], before[16];

        memcpy(copy, at + done, size);
        memcpy(before, copy, size);
        kernel(op, copy, in ? in + done : NULL, with ? with + done : NULL, out ? out + done : NULL, 1);
        /* Write only changes: for an operation that changes nothing the memory may be mapped read-only. */
        if (memcmp(copy, before, size) != 0)
            memcpy(at + done, copy, size);
    }
}

/* Update elements under the locks of one stripe, or two, at a time. */
static void update_locked(ofpi_atomic_kernel *kernel, size_t size, uint32_t op, char *at, const char *in,
                          const char *with, char *out, uint64_t count)
{
    while (count > 0) {
        uintptr_t address = (uintptr_t)at;
        uint64_t here = (STRIPE_SIZE - address % STRIPE_SIZE) / size; /* elements that end within the stripe */
        uint32_t first = stripe_of_address(address), last = first;

        if (here == 0) {
            here = 1;
            last = stripe_of_address(address + size - 1);
        }
        if (here > count)
            here = count;
        lock_stripes(first, last);
        update_copies(kernel, size, op, at, in, with, out, here);
        unlock_stripes(first, last);
        at += here * size;
        in = in ? in + here * size : NULL;
        with = with ? with + here * size : NULL;
        out = out ? out + here * size : NULL;
        count -= here;
    }
}

bool ofpi_atomic_is_direct(uint32_t datatype, const void *target)
{
    size_t size = ofpi_datatype_get_size(datatype);

    return size <= sizeof(uint64_t) && !((uintptr_t)target & (size - 1));
}

int ofpi_atomic_execute(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype, void *target,
                        const void *operand, const void *compare, void *result, uint64_t count)
{
    const char *in = atomic_op == OFP_ATOMIC_READ ? NULL : operand;
    const char *with = ofp_operation_is(operation_code, OFP_COMPARES) ? compare : NULL;
    char *out = ofp_operation_is(operation_code, OFP_READS) ? result : NULL;

    if (!ofpi_atomic_is_valid(operation_code, atomic_op, datatype))
        return -EOPNOTSUPP;
    if (ofpi_atomic_is_direct(datatype, target))
        types[datatype].kernel(atomic_op, target, in, with, out, count);
    else
        update_locked(types[datatype].kernel, types[datatype].size, atomic_op, target, in, with, out, count);
    return 0;
}
