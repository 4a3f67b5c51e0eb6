/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an endpoint by name: read all, and change some while the endpoint is open. */
#include <errno.h>
#include <string.h>

#include "match/receive_context.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"

struct option {
    const char *name;
    bool own; /* an alias has its own value */
    /* The lock is held. -ENOPROTOOPT: this endpoint has no such option. */
    int (*get)(const struct ofpi_endpoint *endpoint, uint64_t *value);
    int (*set)(struct ofpi_endpoint *endpoint, uint64_t value); /* NULL: read only */
};

static int get_min_multi_recv(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    if (!(endpoint->info.caps & OFP_CAP_MULTI_RECV))
        return -ENOPROTOOPT;
    *value = endpoint->info.offloads_matching ? endpoint->base.min_multi_recv
                                              : ofpi_receive_context_min_multi_recv(endpoint->receive_context);
    return 0;
}

static int set_min_multi_recv(struct ofpi_endpoint *endpoint, uint64_t value)
{
    /* A transport that matches reads the value only when the endpoint opens. */
    if (endpoint->info.offloads_matching)
        return -ENOPROTOOPT;
    if (!value || value > OFP_BYTES_MAX)
        return -EINVAL;
    ofpi_receive_context_set_min_multi_recv(endpoint->receive_context, value);
    return 0;
}

static int get_tx_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->tx_size;
    return 0;
}

static int set_tx_size(struct ofpi_endpoint *endpoint, uint64_t value)
{
    if (!value || value > OFP_COUNT_MAX)
        return -EINVAL;
    endpoint->tx_size = value;
    return 0;
}

static int get_tx_flags(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->tx_flags;
    return 0;
}

static int set_tx_flags(struct ofpi_endpoint *endpoint, uint64_t value)
{
    if (value & ~(uint64_t)OFPI_TX_DEFAULTS)
        return -EINVAL;
    endpoint->tx_flags = value;
    return 0;
}

static int get_rx_flags(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->rx_flags;
    return 0;
}

static int set_rx_flags(struct ofpi_endpoint *endpoint, uint64_t value)
{
    if (value & ~(uint64_t)OFPI_RX_DEFAULTS)
        return -EINVAL;
    endpoint->rx_flags = value;
    return 0;
}

static int get_inject_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->info.inject_size;
    return 0;
}

static int get_max_msg_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->info.max_msg_size;
    return 0;
}

static int get_max_rma_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->info.max_rma_size;
    return endpoint->info.caps & OFP_CAP_RMA ? 0 : -ENOPROTOOPT;
}

static int get_max_atomic_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->info.max_atomic_size;
    return endpoint->info.caps & OFP_CAP_ATOMIC ? 0 : -ENOPROTOOPT;
}

static int get_rx_size(const struct ofpi_endpoint *endpoint, uint64_t *value)
{
    *value = endpoint->info.rx_size;
    return 0;
}

static const struct option options[] = {
    {"min_multi_recv", false, get_min_multi_recv, set_min_multi_recv},
    {"tx_size", false, get_tx_size, set_tx_size},
    {"tx_flags", true, get_tx_flags, set_tx_flags},
    {"rx_flags", true, get_rx_flags, set_rx_flags},
    {"inject_size", false, get_inject_size, NULL},
    {"max_msg_size", false, get_max_msg_size, NULL},
    {"max_rma_size", false, get_max_rma_size, NULL},
    {"max_atomic_size", false, get_max_atomic_size, NULL},
    {"rx_size", false, get_rx_size, NULL},
};

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

int ofp_endpoint_option_get(struct ofp_endpoint *handle, const char *name, uint64_t *value)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct option *option = find_option(name);
    int result;

    if (!option)
        return -ENOPROTOOPT;
    result = ofpi_endpoint_enter(endpoint);
    if (result)
        return result;
    result = option->get(option->own ? endpoint : endpoint->behind, value);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_endpoint_option_set(struct ofp_endpoint *handle, const char *name, uint64_t value)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct option *option = find_option(name);
    int result;

    if (!option)
        return -ENOPROTOOPT;
    if (!option->set)
        return -EPERM;
    result = ofpi_endpoint_enter(endpoint);
    if (result)
        return result;
    result = option->set(option->own ? endpoint : endpoint->behind, value);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
