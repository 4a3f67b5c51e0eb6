/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aliases: handles with default flags of their own. An alias is an endpoint object of which only the head is used:
 * domain, `behind` (the endpoint that it stands for), flags and `closing`. It is in no list, and no provider gets it.
 * When it is retired, `behind` points to the alias itself, which is closing, so that calls which still enter are
 * refused.
 */
#include "open/alias.h"

#include <errno.h>
#include <stdlib.h>

#include "object/endpoint.h"
#include "object/operation.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"

static const struct ofp_endpoint_ops no_transport = {0};

static struct ofpi_endpoint *create_alias(struct ofpi_endpoint *endpoint, uint64_t tx_flags, uint64_t rx_flags)
{
    struct ofpi_endpoint *alias = calloc(1, sizeof(*alias));

    if (!alias)
        return NULL;
    alias->base = endpoint->base;
    alias->base.ops = &no_transport;
    alias->domain = endpoint->domain;
    alias->behind = endpoint;
    alias->tx_cq = endpoint->tx_cq;
    alias->tx_flags = tx_flags;
    alias->rx_flags = rx_flags;
    endpoint->aliases++;
    return alias;
}

int ofp_endpoint_alias(struct ofp_endpoint *handle, uint64_t tx_flags, uint64_t rx_flags, struct ofp_endpoint **result)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle, *alias;
    int error;

    if (tx_flags & ~(uint64_t)OFPI_TX_DEFAULTS || rx_flags & ~(uint64_t)OFPI_RX_DEFAULTS)
        return -EINVAL;
    error = ofpi_endpoint_enter(endpoint);
    if (error)
        return error;
    endpoint = endpoint->behind;
    alias = NULL;
    error = ofpi_endpoint_is_receive_only(endpoint) ? -EOPNOTSUPP : 0;
    if (!error) {
        alias = create_alias(endpoint, tx_flags, rx_flags);
        error = alias ? 0 : -ENOMEM;
    }
    ofpi_domain_leave(endpoint->domain);
    if (alias)
        *result = &alias->base;
    return error;
}

void ofpi_alias_retire(struct ofpi_endpoint *alias)
{
    alias->behind->aliases--;
    alias->behind = alias;
    alias->refuses = alias->closing = alias->stopped = true;
}
