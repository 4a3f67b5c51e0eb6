/* SPDX-License-Identifier: BSD-3-Clause */
/* A hook outside the tree, whose table ends earlier than the core's. */
#include <stddef.h>

#include "ofipy/hook.h"

static const struct ofp_hook hook = {
    .abi = OFP_HOOK_ABI,
    .size = offsetof(struct ofp_hook, refused),
    .name = "outside",
    .description = "Loaded by a test",
    /* Beyond the size that it says. */
    .released = (void (*)(struct ofp_hook_endpoint *, void *, size_t))1,
};

const struct ofp_hook *ofp_hook_entry(const struct ofp_hook_core *core) { return core->core ? &hook : NULL; }
