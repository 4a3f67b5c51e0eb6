/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks that this process knows. Any thread; own lock. Entries are never removed. */
#ifndef OFPI_HOOKS_H
#define OFPI_HOOKS_H

#include "ofipy/hook.h"

/* Check a hook's table and add it; a second hook of the same name is ignored. */
int ofpi_hook_add(const struct ofp_hook *hook, char *text, size_t text_size);
/* A hook by its index, in the order of registration; NULL: none. */
const struct ofp_hook *ofpi_hook_find_at(int index);
/* A hook by its name; NULL: none. */
const struct ofp_hook *ofpi_hook_find(const char *name, size_t length);
/* The names of all hooks, separated by commas, for error texts. */
void ofpi_hook_names_format(char *text, size_t text_size);

#endif
