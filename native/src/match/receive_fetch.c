/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_fetch.h"

#include <errno.h>

#include "base/clock.h"
#include "base/timer.h"
#include "match/lent.h"
#include "match/unexpected.h"
#include "object/domain.h"

/* A claim within this time (ns) receives the announced message without a copy. */
#define FETCH_DELAY 1000000

int ofpi_receive_pull(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                      const struct ofpi_receiver *receiver)
{
    struct ofp_message message = ofpi_message_of_unexpected(unexpected);
    struct ofpi_inflight *inflight = ofpi_inflight_allocate(&context->in_flight, context);
    int result;

    if (!inflight)
        return -ENOMEM;
    result = ofpi_unexpected_allocate_payload(&context->unexpected, unexpected,
                                              unexpected->length > OFPI_SHORT_PAYLOAD ? receiver : NULL);
    if (result) {
        ofpi_inflight_free(&context->in_flight, inflight);
        return result;
    }
    if (receiver) {
        inflight->receiver = *receiver;
        inflight->matched = true;
    }
    ofpi_inflight_bind_unexpected(inflight, unexpected, unexpected->endpoint, &message);
    /* The provider may complete the receive within this call: do not touch it afterwards. */
    unexpected->endpoint->ops->receive_start(unexpected->endpoint, &inflight->base);
    return 0;
}

/* If the bound is reached or memory is short, the message stays announced until its request claims it. */
static void pull_unclaimed_payloads(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_receive_context *context = OFP_CONTAINER_OF(timer, struct ofpi_receive_context, pull_timer);
    struct ofp_list *node, *following;

    (void)now;
    OFP_LIST_EACH(node, following, &context->unexpected.set_aside) {
        struct ofpi_unexpected *unexpected = OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);

        if (unexpected->announced && !unexpected->error && ofpi_unexpected_is_of_request(unexpected))
            ofpi_receive_pull(context, unexpected, NULL);
    }
}

void ofpi_receive_pull_open(struct ofpi_receive_context *context, struct ofpi_domain *domain,
                            void (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer))
{
    context->domain = domain;
    context->start_timer = start_timer;
    context->pull_timer = (struct ofp_timer){.expired = pull_unclaimed_payloads};
}

void ofpi_receive_pull_close(struct ofpi_receive_context *context)
{
    /* Programs that measure matching have no domain; they have no requests either, so they start no timer. */
    if (context->pull_timer.position)
        ofpi_timers_stop(&context->domain->timers, &context->pull_timer);
}

void ofpi_receive_pull_schedule(struct ofpi_receive_context *context)
{
    if (context->pull_timer.position)
        return;
    context->pull_timer.deadline = ofpi_clock_read() + FETCH_DELAY;
    context->start_timer(context->domain, &context->pull_timer);
}
