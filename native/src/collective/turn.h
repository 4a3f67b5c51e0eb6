/* SPDX-License-Identifier: BSD-3-Clause */
/* A turn: work that waits for the end of the current public call or round of progress, where messages may be posted. */
#ifndef OFPI_TURN_H
#define OFPI_TURN_H

#include "object/domain.h"

/* A member of the object whose turn it is. */
struct ofpi_turn {
    struct ofp_list node;                /* in domain->due_turns while it is due */
    bool (*run)(struct ofpi_turn *turn); /* it is no longer due, and may be made so again; true: something moved */
};

static inline void ofpi_turn_schedule(struct ofpi_domain *domain, struct ofpi_turn *turn)
{
    if (!ofp_list_linked(&turn->node))
        ofp_list_append(&domain->due_turns, &turn->node);
}
static inline void ofpi_turn_cancel(struct ofpi_turn *turn)
{
    if (ofp_list_linked(&turn->node))
        ofp_list_remove(&turn->node);
}

#endif
