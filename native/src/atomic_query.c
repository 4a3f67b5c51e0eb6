/* SPDX-License-Identifier: BSD-3-Clause */
/* What a domain answers about its atomic operations. */
#include "atomic.h"
#include "domain.h"

int ofp_atomic_query(struct ofp_domain *handle, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                     uint64_t *count)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    ofpi_domain_leave(domain);
    if (!(handle->info->caps & OFP_CAP_ATOMIC) || !ofpi_atomic_is_valid(operation_code, atomic_op, datatype))
        return -EOPNOTSUPP;
    if (handle->provider->atomic_query)
        return handle->provider->atomic_query(handle->info, operation_code, atomic_op, datatype, count);
    *count = handle->info->max_atomic_size / ofpi_datatype_size(datatype);
    return 0;
}
