/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor of atomic operations (fi_atomic(3)): of what a peer asks a target for, and of what an initiator does by itself
 * in memory that it shares with the target.
 *
 * An element of 8 bytes or fewer at an address that is a multiple of its size is updated by the processor's own instructions:
 * as one step against every other executor of whatever process, and against the atomic accesses of a program to its own
 * memory. Any other, larger or not aligned, is updated under locks of this process: as one step against every other call in
 * this process for elements of that kind. A vector is not one step, only each of its elements is.
 * Any thread may call, with a domain's lock or without; the executor's locks are taken last and let go before return.
 */
#ifndef OFPI_ATOMIC_H
#define OFPI_ATOMIC_H

#include "ofipy/types.h"

/* Bytes of one element; 0 for a number that is no datatype. */
size_t ofpi_datatype_get_size(uint32_t datatype);

/* Whether there is such an operation. Takes any numbers: a peer may have chosen them. */
bool ofpi_atomic_is_valid(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype);

/* Whether elements from `target` on are updated without a lock, so that any process may do it that has the memory mapped. */
bool ofpi_atomic_is_direct(uint32_t datatype, const void *target);

/*
 * Do it to `count` elements at `target`. Every array holds `count` elements, at any alignment.
 *   operand: not looked at by OFP_ATOMIC_READ
 *   compare: what OFP_COMPARE_ATOMIC compares with, or its mask; others do not look at it
 *   result:  OFP_FETCH_ATOMIC and OFP_COMPARE_ATOMIC leave there what the target held before; others do not look at it. It
 *            may be `operand` or `compare` itself.
 * The target is written only where its value is replaced. 0, or -EOPNOTSUPP when it is not valid: nothing was touched.
 */
int ofpi_atomic_execute(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype, void *target,
                        const void *operand, const void *compare, void *result, uint64_t count);

/* In a forked child: nobody holds the locks, whoever held them in the parent. */
void ofpi_atomic_forked(void);

#endif
