/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks that this process knows. Any thread; own lock. Entries are never removed. */
#ifndef OFPI_HOOKS_H
#define OFPI_HOOKS_H

#include "ofipy/hook.h"

/* Check a hook's table and enter it; the first of a name stays. */
int ofpi_hook_add(const struct ofp_hook *hook, char *text, size_t text_size);
/* In the order in which they were entered; NULL: there is none. */
const struct ofp_hook *ofpi_hook_find_at(int index);
/* NULL: there is none of that name. */
const struct ofp_hook *ofpi_hook_find(const char *name, size_t length);
/* The names of all, with commas, for a refusal. */
void ofpi_hook_names_format(char *text, size_t text_size);

#endif
