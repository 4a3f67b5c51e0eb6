/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of collectives: out[i] = left[i] op right[i]. Other than the executor of atomics they replace no value that
 * another thread may change, so they run at the speed of memory.
 *
 * All members of a group must get the same bits, although they reduce in different orders of left and right. So a minimum
 * or maximum with a NaN is a NaN, and every NaN that is computed is the same one.
 */
#ifndef OFPI_REDUCE_H
#define OFPI_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of an element in bytes; 0: no datatype of reductions. These are the executor's, and OFP_BFLOAT16. */
size_t ofpi_reduction_get_size(uint32_t datatype);
/* Whether the operation is one of MIN MAX SUM PROD and the logical and bitwise ones, and the type has it. */
bool ofpi_reduction_is_valid(uint32_t op, uint32_t datatype);
/* Of a valid reduction. `out` may be `left` or `right`, and no other overlap; any alignment. */
void ofpi_reduction_execute(uint32_t op, uint32_t datatype, void *out, const void *left, const void *right,
                            uint64_t count);

#endif
