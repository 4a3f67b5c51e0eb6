/* SPDX-License-Identifier: BSD-3-Clause */
/* ofp_atomic_query: which atomic operations a domain supports. */
#include "operation/atomic_query.h"

#include <errno.h>

#include "atomic/atomic.h"
#include "object/domain.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"

int ofpi_provider_atomic_query(const struct ofp_provider *provider, const struct ofp_info *info,
                               uint32_t operation_code, uint32_t atomic_op, uint32_t datatype, uint64_t *count)
{
    if (operation_code & OFP_DEVICE_ATOMIC)
        return info->caps & OFP_CAP_DEVICE_ATOMIC
                   ? provider->atomic_query(info, operation_code, atomic_op, datatype, count)
                   : -EOPNOTSUPP;
    if (!(info->caps & OFP_CAP_ATOMIC) || !ofpi_atomic_is_valid(operation_code, atomic_op, datatype))
        return -EOPNOTSUPP;
    if (provider->atomic_query) {
        int result = provider->atomic_query(info, operation_code, atomic_op, datatype, count);

        if (result != -ENOSYS)
            return result;
    }
    *count = info->max_atomic_size / ofpi_datatype_get_size(datatype);
    return 0;
}

int ofp_atomic_query(struct ofp_domain *handle, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                     uint64_t *count)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    ofpi_domain_leave(domain);
    return ofpi_provider_atomic_query(handle->provider, handle->info, operation_code, atomic_op, datatype, count);
}
