/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries for completions that cannot be delivered at once: a queue's ring is full, or a multi-receive request has a
 * completion that was not read yet.
 *
 * domain->entries reserves the entries in advance, so that a completion never fails for lack of memory: one for each
 * object of an operation in flight, reserved when the object's memory is allocated; one for each message in a
 * multi-receive buffer, reserved when the message is matched; one for each queue; and one for an operation that ends
 * within its call. When an entry was used and the reserve could not be refilled, the domain's endpoints accept no
 * operations until it is.
 */
#ifndef OFPI_ENTRIES_H
#define OFPI_ENTRIES_H

#include "object/domain.h"

struct ofpi_entry {
    struct ofp_list node;
    struct ofp_completion completion;
};

/* Store a copy of the completion in an entry. NULL: out of memory, and no entry was reserved; an error is logged. */
struct ofpi_entry *ofpi_entry_store(struct ofpi_domain *domain, const struct ofp_completion *completion);
/* Refill the reserve, so that endpoints accept operations again. -ENOMEM: not possible yet. */
int ofpi_entries_resume(struct ofpi_domain *domain);

#endif
