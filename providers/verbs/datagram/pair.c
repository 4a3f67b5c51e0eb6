/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "datagram/receive.h"
#include "datagram/send.h"

#define CACHE_LINE 64

static int set_datagram_state(struct verbs_datagram *endpoint, enum ibv_qp_state state, int more)
{
    const struct verbs_domain *domain = endpoint->domain;
    struct ibv_qp_attr attr = {.qp_state = state,
                               .port_num = domain->port->number,
                               .pkey_index = domain->settings.pkey > 0 ? (uint16_t)domain->settings.pkey : 0,
                               .qkey = VERBS_QKEY};

    return -verbs_calls.modify_qp(endpoint->qp, &attr, IBV_QP_STATE | more);
}

static int start_datagram_pair(struct verbs_datagram *endpoint)
{
    int result = set_datagram_state(endpoint, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    if (!result)
        result = set_datagram_state(endpoint, IBV_QPS_RTR, 0);
    if (!result)
        result = set_datagram_state(endpoint, IBV_QPS_RTS, IBV_QP_SQ_PSN);
    return result ? result : verbs_datagram_buffers_post(endpoint);
}

static int allocate_datagram_memory(struct verbs_datagram *endpoint)
{
    size_t size;

    endpoint->buffer_size = (VERBS_GRH_SIZE + endpoint->limit + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    size = (size_t)endpoint->buffer_size * endpoint->buffer_count;
    endpoint->buffers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (endpoint->buffers == MAP_FAILED) {
        endpoint->buffers = NULL;
        return -ENOMEM;
    }
    endpoint->buffers_mr = verbs_calls.reg_mr(endpoint->domain->pd, endpoint->buffers, size, IBV_ACCESS_LOCAL_WRITE);
    endpoint->sends = calloc(endpoint->queue.mask + 1, sizeof(*endpoint->sends));
    if (!endpoint->buffers_mr)
        return -errno;
    return endpoint->sends ? 0 : -ENOMEM;
}

static int create_datagram_queues(struct verbs_datagram *endpoint)
{
    struct verbs_domain *domain = endpoint->domain;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .qp_context = &endpoint->qp_context, .sq_sig_all = 1};

    endpoint->cq = verbs_calls.create_cq(domain->port->context, (int)(endpoint->queue.depth + endpoint->buffer_count),
                                         &endpoint->armed, domain->completions, 0);
    if (!endpoint->cq)
        return -errno;
    attr.send_cq = attr.recv_cq = endpoint->cq;
    attr.cap.max_send_wr = endpoint->queue.depth;
    attr.cap.max_recv_wr = endpoint->buffer_count;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = domain->port->limits.inline_size;
    endpoint->qp = verbs_calls.create_qp(domain->pd, &attr);
    if (!endpoint->qp)
        return -errno;
    endpoint->inline_size = attr.cap.max_inline_data;
    return 0;
}

int verbs_datagram_pair_open(struct verbs_datagram *endpoint, char *text, size_t text_size)
{
    int result;

    verbs_send_queue_init(&endpoint->queue, endpoint->domain->settings.transmit_depth);
    endpoint->buffer_count = endpoint->domain->settings.receive_depth;
    result = allocate_datagram_memory(endpoint);
    if (!result)
        result = create_datagram_queues(endpoint);
    if (!result)
        result = start_datagram_pair(endpoint);
    if (!result)
        return 0;
    snprintf(text, text_size,
             "the device %s makes no queue pair for datagrams, of %u sends and %u receives: %s; smaller ones are asked "
             "for by OFIPY_VERBS_TX_DEPTH and OFIPY_VERBS_RX_DEPTH",
             verbs_calls.get_device_name(endpoint->domain->port->context->device), endpoint->queue.depth,
             endpoint->buffer_count, strerror(-result));
    verbs_datagram_pair_close(endpoint);
    return result;
}

void verbs_datagram_pair_repair(struct verbs_datagram *endpoint, int error, int provider_error)
{
    int result = set_datagram_state(endpoint, IBV_QPS_RESET, 0);

    endpoint->generation++;
    verbs_datagram_sends_fail(endpoint, error, provider_error);
    if (!result)
        result = start_datagram_pair(endpoint);
    if (!result)
        return;
    endpoint->dead = true;
    verbs_core->log(OFP_LOG_ERROR, VERBS_NAME, "endpoint %u: its queue pair failed, and cannot be begun anew: %s",
                    endpoint->base->id, strerror(-result));
}

void verbs_datagram_pair_close(struct verbs_datagram *endpoint)
{
    if (endpoint->qp)
        verbs_calls.destroy_qp(endpoint->qp);
    if (endpoint->cq)
        verbs_calls.destroy_cq(endpoint->cq);
    endpoint->qp = NULL;
    endpoint->cq = NULL;
    if (endpoint->sends)
        verbs_datagram_sends_discard(endpoint);
    if (endpoint->buffers_mr)
        verbs_calls.dereg_mr(endpoint->buffers_mr);
    if (endpoint->buffers)
        munmap(endpoint->buffers, (size_t)endpoint->buffer_size * endpoint->buffer_count);
    endpoint->buffers_mr = NULL;
    endpoint->buffers = NULL;
}
