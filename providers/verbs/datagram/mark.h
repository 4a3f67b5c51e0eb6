/* SPDX-License-Identifier: BSD-3-Clause */
/* What a work request is called, for its completion to say: in which life of the queue pair, and which. */
#ifndef VERBS_DATAGRAM_MARK_H
#define VERBS_DATAGRAM_MARK_H

#include "datagram/datagram.h"

#define VERBS_MARK_RECEIVE (UINT64_C(1) << 63)

static inline uint64_t verbs_datagram_mark(const struct verbs_datagram *endpoint, uint32_t number, bool receive)
{
    return (receive ? VERBS_MARK_RECEIVE : 0) | (uint64_t)(endpoint->life & INT32_MAX) << 32 | number;
}
static inline bool verbs_mark_is_of_this_life(const struct verbs_datagram *endpoint, uint64_t mark)
{
    return (mark >> 32 & INT32_MAX) == (endpoint->life & INT32_MAX);
}
static inline bool verbs_mark_is_receive(uint64_t mark) { return mark & VERBS_MARK_RECEIVE; }
static inline uint32_t verbs_mark_number(uint64_t mark) { return (uint32_t)mark; }

#endif
