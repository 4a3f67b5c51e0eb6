/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/owed.h"

bool verbs_sends_are_awaited(const struct verbs_endpoint *endpoint)
{
    const struct verbs_pair *pair = &endpoint->pair;

    for (uint64_t number = pair->tail; number < pair->head; number++) {
        const struct verbs_work *work = pair->works[number & pair->works_mask];

        if (work && work->pending)
            return true;
    }
    return pair->long_work;
}

/* Backwards: of the work requests that have no work of their own, those before a work's last one may be its. */
uint64_t verbs_sends_unsent(const struct verbs_endpoint *endpoint)
{
    const struct verbs_pair *pair = &endpoint->pair;
    uint64_t count = 0, others = pair->long_work ? pair->long_work->others : 0;

    for (uint64_t number = pair->farewell ? pair->farewell - 1 : pair->head; number > pair->tail; number--) {
        const struct verbs_work *work = pair->works[(number - 1) & pair->works_mask];

        if (work) {
            others = work->others;
            count += !work->pending;
        } else if (others) {
            others--;
        } else {
            count++;
        }
    }
    return count;
}
