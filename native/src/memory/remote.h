/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses of peers to local memory (RMA and atomics), at the target. The domain's lock is held. */
#ifndef OFPI_REMOTE_H
#define OFPI_REMOTE_H

#include "object/domain.h"

int ofpi_remote_access_acquire(struct ofp_endpoint *endpoint, uint64_t key, uint64_t offset, uint64_t length,
                               uint32_t access, struct ofp_remote_access *result);
void ofpi_remote_access_release(struct ofp_remote_access *access);
/* The region is about to close: clear the memory of all accesses in flight, so that they end with an error. */
void ofpi_remote_access_withdraw(struct ofpi_region *region);
void ofpi_remote_event_deliver(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region,
                               uint64_t flags, uint64_t data, uint64_t length);
/*
 * -ECANCELED: the region was closed meanwhile; -EOPNOTSUPP, -EINVAL: the peer's operation is not valid; -EACCES:
 * atomics of the region belong to the device.
 */
int ofpi_remote_atomic_execute(const struct ofp_remote_access *access, uint32_t operation_code, uint32_t atomic_op,
                               uint32_t datatype, const void *operand, const void *compare, void *result);

#endif
