/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of addresses that need the provider. */
#include "base/provider_address.h"

#include <errno.h>
#include <stdio.h>

#include "ofipy/ofp.h"

int ofp_provider_at_node(struct ofp_provider *provider, struct ofp_info *info, const char *node, char *text,
                         size_t text_size)
{
    text[0] = 0;
    if (provider->at_node)
        return provider->at_node(info, node, text, text_size);
    snprintf(text, text_size, "provider %s cannot be told at which address of this host to listen", info->provider);
    return -EOPNOTSUPP;
}

static int check_address_reach(const struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                               size_t length, char *text, size_t text_size)
{
    int result = provider->address_check(info, address, length);

    text[0] = 0;
    if (result || !provider->reaches)
        return result;
    return provider->reaches(info, address, length, text, text_size);
}

int ofp_provider_reaches(struct ofp_provider *provider, const struct ofp_info *info, const void *address, size_t length,
                         char *text, size_t text_size)
{
    return check_address_reach(provider, info, address, length, text, text_size);
}

int ofpi_address_check(const struct ofp_domain *domain, const void *address, size_t length)
{
    char text[OFP_TEXT_MAX];

    return check_address_reach(domain->provider, domain->info, address, length, text, sizeof(text));
}
