/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ID of a work request of a datagram endpoint: generation of the queue pair, number, and whether it is a receive.
 */
#ifndef VERBS_DATAGRAM_WORK_ID_H
#define VERBS_DATAGRAM_WORK_ID_H

#include "datagram/datagram.h"

#define VERBS_WORK_ID_RECEIVE (UINT64_C(1) << 63)

static inline uint64_t verbs_work_id_build(const struct verbs_datagram *endpoint, uint32_t number, bool receive)
{
    return (receive ? VERBS_WORK_ID_RECEIVE : 0) | (uint64_t)(endpoint->generation & INT32_MAX) << 32 | number;
}
static inline bool verbs_work_id_is_current(const struct verbs_datagram *endpoint, uint64_t id)
{
    return (id >> 32 & INT32_MAX) == (endpoint->generation & INT32_MAX);
}
static inline bool verbs_work_id_is_receive(uint64_t id) { return id & VERBS_WORK_ID_RECEIVE; }
static inline uint32_t verbs_number_of_work_id(uint64_t id) { return (uint32_t)id; }

#endif
