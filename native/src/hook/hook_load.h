/* SPDX-License-Identifier: BSD-3-Clause */
/* Where hooks come from. Any thread. */
#ifndef OFPI_HOOK_LOAD_H
#define OFPI_HOOK_LOAD_H

#include "ofipy/hook.h"

/* Those of the tree are known from here on. */
void ofpi_hooks_enter_tree(void);
/* Enter another one; what ofp_hook_load does after loading the object, and tests that link one. */
int ofpi_hook_register(ofp_hook_entry_fn *entry, char *text, size_t text_size);

#endif
