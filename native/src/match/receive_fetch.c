/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_fetch.h"

#include <errno.h>

#include "base/clock.h"
#include "base/timer.h"
#include "match/lent.h"
#include "match/unexpected.h"
#include "object/domain.h"

/* Nanoseconds that a message is left to a waiting thread, which receives it into its own memory without a copy. */
#define FETCH_DELAY 1000000

int ofpi_receive_fetch(struct ofpi_receive_context *context, struct ofpi_unexpected *kept,
                       const struct ofpi_receiver *receiver)
{
    struct ofp_message message = ofpi_unexpected_message(kept);
    struct ofpi_lent *lent = ofpi_lent_take(&context->lent, context);
    int result;

    if (!lent)
        return -ENOMEM;
    result =
        ofpi_unexpected_make_place(&context->unexpected, kept, kept->length > OFPI_SHORT_PAYLOAD ? receiver : NULL);
    if (result) {
        ofpi_lent_give(&context->lent, lent);
        return result;
    }
    if (receiver) {
        lent->receiver = *receiver;
        lent->matched = true;
    }
    ofpi_lent_fill(lent, kept, kept->endpoint, &message);
    /* The provider may complete it from within: nothing is touched afterwards. */
    kept->endpoint->ops->receive_start(kept->endpoint, &lent->base);
    return 0;
}

/* Where there is no room, or no memory, the message goes on being announced, until its request claims it. */
static void fetch_unclaimed(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_receive_context *context = OFP_CONTAINER_OF(timer, struct ofpi_receive_context, fetch);
    struct ofp_list *node, *following;

    (void)now;
    OFP_LIST_EACH(node, following, &context->unexpected.set_aside) {
        struct ofpi_unexpected *kept = OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);

        if (kept->announced && !kept->error && ofpi_unexpected_is_of_request(kept))
            ofpi_receive_fetch(context, kept, NULL);
    }
}

void ofpi_receive_fetch_open(struct ofpi_receive_context *context, struct ofpi_domain *domain,
                             int (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer))
{
    context->domain = domain;
    context->start_timer = start_timer;
    context->fetch = (struct ofp_timer){.expired = fetch_unclaimed};
}

void ofpi_receive_fetch_close(struct ofpi_receive_context *context)
{
    /* Loops that measure matching have no domain, and no request. */
    if (context->fetch.position)
        ofpi_timers_stop(&context->domain->timers, &context->fetch);
}

void ofpi_receive_fetch_soon(struct ofpi_receive_context *context)
{
    if (context->fetch.position)
        return;
    context->fetch.deadline = ofpi_now() + FETCH_DELAY;
    /* Without memory for it the message waits for its request. */
    context->start_timer(context->domain, &context->fetch);
}
