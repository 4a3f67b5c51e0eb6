/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "memory/slot.h"
#include "queue/receive.h"
#include "queue/send.h"
#include "queue/state.h"

static int create_pair_queues(struct verbs_endpoint *endpoint)
{
    struct verbs_domain *domain = endpoint->domain;
    const struct verbs_limits *limits = &domain->port->limits;
    struct verbs_pair *pair = &endpoint->pair;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 0};

    pair->cq = verbs_calls.create_cq(domain->port->context, (int)(pair->queue.depth + pair->receive_depth),
                                     &pair->armed, domain->completions, 0);
    if (!pair->cq)
        return -errno;
    pair->qp_context.id = endpoint->id;
    attr.qp_context = &pair->qp_context;
    attr.send_cq = attr.recv_cq = pair->cq;
    attr.cap.max_send_wr = pair->queue.depth;
    attr.cap.max_recv_wr = pair->receive_depth;
    attr.cap.max_send_sge = limits->segments;
    attr.cap.max_recv_sge = limits->segments + 1;
    attr.cap.max_inline_data = limits->inline_size;
    pair->qp = verbs_calls.create_qp(domain->pd, &attr);
    if (!pair->qp)
        return -errno;
    pair->inline_size = limits->inline_size;
    return 0;
}

int verbs_pair_open(struct verbs_endpoint *endpoint, char *text, size_t text_size)
{
    struct verbs_pair *pair = &endpoint->pair;
    int result;

    ofp_list_init(&pair->receives);
    verbs_send_queue_init(&pair->queue, endpoint->domain->settings.transmit_depth);
    pair->receive_depth = endpoint->domain->settings.receive_depth;
    pair->sends = calloc(pair->queue.mask + 1, sizeof(struct verbs_send *));
    result = pair->sends ? create_pair_queues(endpoint) : -ENOMEM;
    if (!result)
        result = verbs_qp_init(endpoint->domain, endpoint->id, pair->qp);
    if (result && pair->qp && endpoint->unanswered) {
        /* The requesting peer has gone from the connection manager. The core learns this when it answers. */
        endpoint->withdrawn = true;
        verbs_pair_close(endpoint);
        return 0;
    }
    if (result) {
        snprintf(text, text_size,
                 "the device %s makes no queue pair of %u sends and %u receives: %s; smaller ones are asked for by "
                 "OFIPY_VERBS_TX_DEPTH and OFIPY_VERBS_RX_DEPTH",
                 verbs_calls.get_device_name(endpoint->domain->port->context->device), pair->queue.depth,
                 pair->receive_depth, strerror(-result));
        verbs_pair_close(endpoint);
    }
    return result;
}

int verbs_pair_connect(struct verbs_endpoint *endpoint)
{
    return verbs_qp_connect(endpoint->domain, endpoint->id, endpoint->pair.qp, endpoint->responder_resources,
                            endpoint->initiator_depth);
}

void verbs_pair_close(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    /* Only the destroyed queue pair writes no more into memory that its owners get back on return. */
    if (pair->qp)
        verbs_calls.destroy_qp(pair->qp);
    if (pair->cq)
        verbs_calls.destroy_cq(pair->cq);
    pair->qp = NULL;
    pair->cq = NULL;
    pair->armed = false;
    if (pair->sends)
        verbs_sends_discard(endpoint);
    verbs_receives_mark_unposted(endpoint);
}
