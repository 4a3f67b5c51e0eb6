/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of registered memory, for payloads that are cheaper to copy than to register. */
#ifndef VERBS_SLOT_H
#define VERBS_SLOT_H

#include "objects.h"

/* NULL: no more memory can be registered; domain->registration_error says why. */
struct verbs_slot *verbs_slot_allocate(struct verbs_domain *domain);
static inline void verbs_slot_free(struct verbs_domain *domain, struct verbs_slot *slot)
{
    slot->next = domain->slots.free;
    domain->slots.free = slot;
}
void verbs_slots_close(struct verbs_domain *domain);

/* Copy at most `length` bytes between a slot and the memory of an operation. */
void verbs_iov_gather(char *memory, const struct iovec *iov, uint32_t count, uint64_t length);
void verbs_iov_scatter(const char *memory, const struct iovec *iov, uint32_t count, uint64_t length);

#endif
