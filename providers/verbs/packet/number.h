/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a path by its queue pair number, which is all that a completion has. */
#ifndef VERBS_NUMBER_H
#define VERBS_NUMBER_H

#include "packet/packet.h"

bool verbs_number_add(struct verbs_rdm *rdm, struct verbs_path *path);
void verbs_number_remove(struct verbs_rdm *rdm, struct verbs_path *path);
static inline struct verbs_path *verbs_number_find(const struct verbs_rdm *rdm, uint32_t number)
{
    struct verbs_path *path = rdm->buckets ? rdm->by_number[number & (rdm->buckets - 1)] : NULL;

    while (path && path->number != number)
        path = path->next;
    return path;
}

#endif
