/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of hooks with their options, as OFIPY_HOOKS has it: "trace:file=t.json;fault:fail=0.01,seed=7". Created when a
 * domain opens; constant and owned by the domain from then on.
 */
#ifndef OFPI_HOOK_LIST_H
#define OFPI_HOOK_LIST_H

#include "ofipy/hook.h"

struct ofpi_hook_value {
    const char *text; /* of the list's own copy, or the default */
    int64_t number;   /* the value of `text` as a number; param_text.h */
};

/*
 * One hook of a list. The offsets say where its bytes lie in the hooks' memory of an endpoint, a peer and an operation.
 */
struct ofpi_hook_use {
    const struct ofp_hook *hook;
    struct ofpi_hook_value *values; /* of the hook's options, in their order */
    size_t at_endpoint, at_peer, at_operation;
};

struct ofpi_hook_list {
    uint32_t count;
    size_t endpoint_size, peer_size, operation_size; /* sums over all hooks, multiples of 16 */
    struct ofpi_hook_use *uses;                      /* the first is nearest to the application */
    char *text;
};

/*
 * Read a list. *list is NULL for an empty one. -EINVAL with a text that names the unknown hook or option and lists the
 * known ones; -ENOMEM.
 */
int ofpi_hook_list_read(const char *text, struct ofpi_hook_list **list, char *reason, size_t reason_size);
void ofpi_hook_list_free(struct ofpi_hook_list *list); /* NULL: no effect */

#endif
