/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags and capability of an operation by its code, for error texts of callers. */
#include "ofipy/ofp.h"
#include "ofipy/operation.h"

uint32_t ofp_operation_allowed_flags(uint32_t code) { return ofp_operation_row(code)->flags; }

uint64_t ofp_operation_capability(uint32_t code) { return ofp_operation_row(code)->capability; }
