/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries for completions that cannot go to their place at once: a queue's ring is full, or a request has one to be taken already.
 * There is one in reserve (domain->entries) for each object that an operation under way has, from when such objects are made; for each
 * message in a multi-receive buffer, from when it is matched; and for each queue. One more is for an operation that ends within its
 * call. So a completion never wants for memory. When the reserve is not whole after an entry was used, nothing new is posted until it is.
 */
#ifndef OFPI_ENTRIES_H
#define OFPI_ENTRIES_H

#include "object/domain.h"

struct ofpi_entry {
    struct ofp_list node;
    struct ofp_completion completion;
};

/* A copy of the completion. NULL: out of memory, and it was not promised. */
struct ofpi_entry *ofpi_entry_store(struct ofpi_domain *domain, const struct ofp_completion *completion);
/* Post again if there is memory for it: 0; otherwise -ENOMEM. */
int ofpi_entries_resume(struct ofpi_domain *domain);

#endif
