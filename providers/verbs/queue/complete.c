/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/complete.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "queue/fault.h"
#include "queue/receive.h"
#include "queue/send.h"

#define BATCH 16

/* A send has its number as ID, and a receive a pointer, which is larger than any number. */
static bool is_receive(const struct verbs_pair *pair, const struct ibv_wc *wc) { return wc->wr_id >= pair->queue.head; }

static void report_peer_lost(struct verbs_endpoint *endpoint, int error, const char *text)
{
    if (endpoint->peer)
        ofp_peer_lost(endpoint->peer, error, false, text);
}

/* The first failed completion has the reason; those after it are flushed. Any failure ends the connection. */
static void work_request_failed(struct verbs_endpoint *endpoint, const struct ibv_wc *wc)
{
    char text[OFP_TEXT_MAX];
    int fault, error;

    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        endpoint->pair.flushed = true;
        return;
    }
    fault = verbs_fault_identify(endpoint->domain, wc->status);
    error = verbs_fault_find_error(fault);
    snprintf(text, sizeof(text), "%s (status %d, vendor error 0x%x)", verbs_fault_find_text(fault), (int)wc->status,
             wc->vendor_err);
    if (is_receive(&endpoint->pair, wc))
        verbs_receive_failed(endpoint, wc, error);
    else
        verbs_send_failed(endpoint, wc->wr_id, error, verbs_code_of_fault(fault));
    report_peer_lost(endpoint, error, text);
}

static void handle_completion(struct verbs_endpoint *endpoint, const struct ibv_wc *wc)
{
    if (VERBS_UNLIKELY(wc->status != IBV_WC_SUCCESS))
        work_request_failed(endpoint, wc);
    else if (is_receive(&endpoint->pair, wc))
        verbs_receive_ended(endpoint, wc);
    else
        verbs_sends_ended(endpoint, wc->wr_id + 1);
}

int verbs_pair_poll(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct ibv_wc completions[BATCH];
    /* Read this before the queue: the completion with the reason precedes the event. */
    int fatal = atomic_load_explicit(&pair->qp_context.fatal, memory_order_acquire);
    int count = pair->cq ? ibv_poll_cq(pair->cq, BATCH, completions) : 0;

    for (int i = 0; i < count && pair->cq; i++)
        handle_completion(endpoint, &completions[i]);
    if (VERBS_UNLIKELY(count < 0 || ((pair->flushed || fatal) && count < BATCH)) && endpoint->peer) {
        int fault = verbs_fault_identify(endpoint->domain, IBV_WC_WR_FLUSH_ERR);

        pair->flushed = false;
        report_peer_lost(endpoint, verbs_fault_find_error(fault),
                         fault == IBV_WC_WR_FLUSH_ERR ? verbs_event_find_text(fatal) : verbs_fault_find_text(fault));
        return 1;
    }
    return count > 0 ? count : 0;
}

void verbs_pair_poll_all(struct verbs_endpoint *endpoint)
{
    const struct verbs_pair *pair = &endpoint->pair;
    uint64_t polled = 0, most = (uint64_t)pair->queue.depth + pair->receive_depth;
    int count = 1;

    for (; count && polled < most; polled += (uint64_t)count)
        count = verbs_pair_poll(endpoint);
}

bool verbs_pair_arm(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    if (!pair->cq)
        return true;
    if (!pair->armed && ibv_req_notify_cq(pair->cq, 0) != 0)
        return false;
    pair->armed = true;
    /* Completions before arming cause no notification. */
    return verbs_pair_poll(endpoint) == 0;
}

void verbs_completion_channel_handle(struct ofp_watch *watch, uint32_t events)
{
    struct verbs_domain *domain = OFP_CONTAINER_OF(watch, struct verbs_domain, completion_watch);
    struct ibv_cq *cq;
    void *context;

    (void)events;
    /* Progress follows, and polls the queues. */
    while (verbs_calls.get_cq_event(domain->completions, &cq, &context) == 0) {
        *(bool *)context = false;
        verbs_calls.ack_cq_events(cq, 1);
    }
}
