/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/owed.h"

bool verbs_sends_are_awaited(const struct verbs_endpoint *endpoint)
{
    const struct verbs_pair *pair = &endpoint->pair;

    for (uint64_t number = pair->queue.tail; number < pair->queue.head; number++) {
        const struct verbs_send *send = pair->sends[verbs_place_of_number(&pair->queue, number)];

        if (send && send->pending)
            return true;
    }
    return pair->long_send;
}

/*
 * Counts backwards. Work requests without an operation of their own, before the last one of an operation, may belong
 * to it.
 */
uint64_t verbs_sends_count_unsent(const struct verbs_endpoint *endpoint)
{
    const struct verbs_pair *pair = &endpoint->pair;
    uint64_t count = 0, others = pair->long_send ? pair->long_send->others : 0;

    for (uint64_t number = pair->goodbye ? pair->goodbye - 1 : pair->queue.head; number > pair->queue.tail; number--) {
        const struct verbs_send *send = pair->sends[verbs_place_of_number(&pair->queue, number - 1)];

        if (send) {
            others = send->others;
            count += !send->pending;
        } else if (others) {
            others--;
        } else {
            count++;
        }
    }
    return count;
}
