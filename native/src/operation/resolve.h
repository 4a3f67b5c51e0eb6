/* SPDX-License-Identifier: BSD-3-Clause */
/* From an operation's record to a checked transfer. The domain's lock is held. */
#ifndef OFPI_RESOLVE_H
#define OFPI_RESOLVE_H

#include "object/endpoint.h"

/* A resolved operation with the memory that its transfer points to. */
struct ofpi_resolved {
    struct ofp_transfer transfer;
    struct iovec iov[OFP_SEGMENT_LIMIT];
    struct ofp_region *regions[OFP_SEGMENT_LIMIT];
    struct ofp_remote_segment remote[OFP_SEGMENT_LIMIT];
};

/* A part of a region, or of the process's memory: 0, -OFP_ENOREGION, -EACCES, -ERANGE, -EFAULT. */
int ofpi_segment_resolve(struct ofpi_domain *domain, uint32_t access, uint32_t region_id, uint64_t offset,
                         uint64_t length, struct iovec *iov, struct ofp_region **region);
/* A result of ofpi_operation_resolve: the record is a collective, of which nothing was checked. */
#define OFPI_IS_OF_GROUP 1
/*
 * Check a record whole and resolve its segments: 0, -EINVAL, -EOPNOTSUPP, -EMSGSIZE, -ENOKEY-like errors of a bad region;
 * or OFPI_IS_OF_GROUP.
 */
int ofpi_operation_resolve(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                           struct ofpi_resolved *resolved);
/* As ofpi_operation_resolve, for a record that is posted later: a collective is checked, too, and nothing resolved of it. */
int ofpi_operation_check(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                         struct ofpi_resolved *resolved);

#endif
