/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor of atomic operations (fi_atomic(3)). The target calls it for the operations of its peers. An initiator
 * calls it for its own operations on memory that it shares with the target.
 *
 * An element of at most 8 bytes, at an address that is a multiple of its size, is updated by atomic instructions of the
 * processor. The update is atomic against the executors of all processes, and against atomic accesses of the program.
 * Any other element, larger or not aligned, is updated under locks of this process. The update is atomic only against
 * other calls in this process for such elements. Each element of a vector is updated atomically, but not the vector as
 * a whole. Any thread may call, with a domain's lock held or not. The executor's locks are acquired last, and released
 * before return.
 */
#ifndef OFPI_ATOMIC_H
#define OFPI_ATOMIC_H

#include "ofipy/types.h"

/* The size of one element, in bytes; 0 for a number that is no datatype. */
size_t ofpi_datatype_get_size(uint32_t datatype);

/* Whether the combination is a valid operation. The arguments may be any numbers: a peer may have chosen them. */
bool ofpi_atomic_is_valid(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype);

/*
 * Whether elements from `target` on are updated without locks. Every process that maps the memory may update them then.
 */
bool ofpi_atomic_is_direct(uint32_t datatype, const void *target);

/*
 * Execute the operation on `count` elements at `target`. Every array has `count` elements, at any alignment.
 *   operand: ignored by OFP_ATOMIC_READ
 *   compare: the values, or the mask, of OFP_COMPARE_ATOMIC; ignored by others
 *   result:  receives the old values of the target for OFP_FETCH_ATOMIC and OFP_COMPARE_ATOMIC; ignored by others. May
 *            be the same array as `operand` or `compare`.
 * Only elements whose value is replaced are written. Returns 0, or -EOPNOTSUPP if the operation is not valid: nothing
 * was read or written then.
 */
int ofpi_atomic_execute(uint32_t operation_code, uint32_t atomic_op, uint32_t datatype, void *target,
                        const void *operand, const void *compare, void *result, uint64_t count);

/* In a forked child: reset the locks, since threads of the parent that held them do not exist in the child. */
void ofpi_atomic_forked(void);

#endif
