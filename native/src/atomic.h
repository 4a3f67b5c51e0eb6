/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor of atomic operations: what a target does to its own memory when a peer asks (fi_atomic(3)).
 *
 * An element is updated as one step against every other call of ofpi_atomic_execute in this process, whatever the domain
 * and whatever the operations; a vector is not one step, only each of its elements is. The executor's own locks see to
 * that, never atomic instructions of the processor: so what the application does to the same memory by itself is not part
 * of it. Any thread may call, with a domain's lock or without; the executor's locks are taken last and let go before return.
 */
#ifndef OFPI_ATOMIC_H
#define OFPI_ATOMIC_H

#include "ofipy/types.h"

/* Bytes of one element; 0 for a number that is no datatype. */
size_t ofpi_datatype_size(uint32_t datatype);

/* Whether there is such an operation. Takes any numbers: a peer may have chosen them. */
bool ofpi_atomic_is_valid(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype);

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
