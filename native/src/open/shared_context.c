/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive contexts that several endpoints share. The handle is an endpoint without a transport and a transmit side. It
 * owns the receive context, and receives are posted to it, so posting, requests, cancelling and setting messages aside
 * need no separate code. It is not among the domain's endpoints, and no message arrives at it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/page.h"
#include "completion/completion_queue.h"
#include "hook/hooked.h"
#include "match/receive_context.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/vector.h"
#include "ofipy/ofp.h"
#include "open/endpoint_open.h"
#include "progress/progress.h"

static int refuse_address(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    (void)endpoint;
    (void)address;
    (void)length;
    return -EOPNOTSUPP;
}

static const struct ofp_endpoint_ops no_transport = {.name = refuse_address};

static struct ofpi_endpoint *create_shared_context(struct ofpi_domain *domain,
                                                   const struct ofp_receive_context_attr *attr)
{
    struct ofpi_endpoint *context = calloc(1, sizeof(*context));

    if (!context)
        return NULL;
    context->base.ops = &no_transport;
    context->base.domain = &domain->base;
    context->base.id = ++domain->next_endpoint_id;
    context->info = domain->info;
    context->base.info = &context->info;
    context->domain = domain;
    context->behind = context;
    context->counts = ofpi_counts_open(&context->info);
    context->rx_cq = attr->cq;
    context->av = attr->av;
    ofp_list_init(&context->backlogged);
    ofp_list_init(&context->removed);
    ofp_list_init(&context->idle_uninserted);
    ofp_list_init(&context->sourceless);
    if (!context->counts) {
        free(context);
        return NULL;
    }
    return context;
}

static void release_shared_context(struct ofpi_endpoint *context)
{
    if (context->receive_context)
        ofpi_receive_context_close(context->receive_context);
    context->receive_context = NULL;
    ofpi_counts_close(context->counts);
    ofpi_hooks_close(context);
}

int ofp_receive_context_open(struct ofp_domain *handle, const struct ofp_receive_context_attr *attr,
                             struct ofp_endpoint **result)
{
    char text[OFP_TEXT_MAX] = "";
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_endpoint *context;
    int error;

    if (!attr->cq || attr->cq->domain != domain || !ofpi_vector_is_usable(domain, attr->av) ||
        attr->unexpected_limit > OFP_BYTES_MAX || attr->min_multi_recv > OFP_BYTES_MAX)
        return -EINVAL;
    if (domain->info.offloads_matching)
        return -EOPNOTSUPP;
    error = ofpi_domain_enter(domain);
    if (error)
        return error;
    context = create_shared_context(domain, attr);
    error = context ? ofpi_endpoint_open_context(context, attr->unexpected_limit, attr->min_multi_recv) : -ENOMEM;
    if (!error)
        error = ofpi_hooks_open(context, text, sizeof(text));
    if (error) {
        if (context)
            release_shared_context(context);
        free(context);
    } else {
        attr->cq->uses++;
        if (attr->av)
            attr->av->uses++;
        ofp_list_append(&domain->receive_contexts, &context->node);
        domain->endpoint_count++;
        *result = &context->base;
    }
    ofpi_domain_leave(domain);
    return error;
}

int ofp_receive_context_retire(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *context = (struct ofpi_endpoint *)handle;
    struct ofpi_domain *domain = context->domain;
    int result = ofpi_endpoint_enter(context);

    if (result)
        return result;
    if (context->sharers) {
        ofpi_domain_leave(domain);
        return -EBUSY;
    }
    context->refuses = context->closing = context->stopped = true;
    ofp_list_remove(&context->node);
    domain->endpoint_count--;
    ofpi_receive_context_drain(context->receive_context, handle, ECANCELED);
    release_shared_context(context);
    context->rx_cq->uses--;
    if (context->av)
        context->av->uses--;
    ofpi_domain_leave(domain);
    return 0;
}

int ofp_receive_context_close(struct ofp_endpoint *context)
{
    int result = ofp_receive_context_retire(context);

    if (!result)
        ofp_endpoint_free(context);
    return result;
}
