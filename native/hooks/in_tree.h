/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry functions of the hooks in this folder. These hooks use only ofipy/hook.h of the core. */
#ifndef OFPI_HOOKS_IN_TREE_H
#define OFPI_HOOKS_IN_TREE_H

#include "ofipy/hook.h"

ofp_hook_entry_fn ofpi_hook_debug_get, ofpi_hook_fault_get, ofpi_hook_profile_get, ofpi_hook_trace_get;

#endif
