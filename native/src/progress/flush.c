/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress/flush.h"

void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint)
{
    endpoint->batched = false;
    if (endpoint->base.ops->flush)
        endpoint->base.ops->flush(&endpoint->base);
}

void ofpi_endpoint_flush_later(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;

    if (!ofp_list_linked(&endpoint->flush_node))
        ofp_list_append(&endpoint->domain->to_flush, &endpoint->flush_node);
}

void ofpi_domain_flush(struct ofpi_domain *domain)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&domain->to_flush)))
        ofpi_endpoint_flush(OFP_CONTAINER_OF(node, struct ofpi_endpoint, flush_node));
}
