/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration of built-in and loaded hooks. Any thread. */
#ifndef OFPI_HOOK_LOAD_H
#define OFPI_HOOK_LOAD_H

#include "ofipy/hook.h"

/* Register the built-in hooks. */
void ofpi_hooks_enter_tree(void);
/* Register a hook: for ofp_hook_load, and for tests that link a hook. */
int ofpi_hook_register(ofp_hook_entry_fn *entry, char *text, size_t text_size);

#endif
