/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hooks that this process knows: those of the tree, from the start, and those that were loaded. Any thread; own lock.
 * Entries are never removed.
 */
#ifndef OFPI_HOOKS_H
#define OFPI_HOOKS_H

#include "ofipy/hook.h"
#include "ofipy/ofp.h"

/* Check a hook's table and enter it; what ofp_hook_load does after loading the object, and tests that link one. */
int ofpi_hook_register(ofp_hook_entry_fn *entry, char *text, size_t text_size);
/* NULL: there is none of that name. */
const struct ofp_hook *ofpi_hook_find(const char *name, size_t length);
/* The names of all, with commas, for a refusal. */
void ofpi_hook_names(char *text, size_t text_size);

ofp_hook_entry_fn ofpi_hook_debug, ofpi_hook_fault, ofpi_hook_profile, ofpi_hook_trace;

#endif
