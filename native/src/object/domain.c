/* SPDX-License-Identifier: BSD-3-Clause */
/* Check that the calling process and thread may use a domain. */
#include "object/domain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object/fork.h"
#include "ofipy/ofp.h"

uint64_t ofpi_thread_identify(void) { return (uint64_t)pthread_self(); }

int ofpi_domain_check(struct ofpi_domain *domain)
{
    if (domain->fork_generation != ofpi_fork_generation)
        return -OFP_EFORKED;
    if (domain->threading == OFP_THREAD_DOMAIN && ofp_load_relaxed(&domain->owner) != ofpi_thread_identify())
        return -OFP_ETHREAD;
    return 0;
}

int ofp_domain_adopt(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;

    if (domain->fork_generation != ofpi_fork_generation)
        return -OFP_EFORKED;
    ofp_store_relaxed(&domain->owner, ofpi_thread_identify());
    return 0;
}

const struct ofp_info *ofp_domain_info(const struct ofp_domain *domain) { return domain->info; }
