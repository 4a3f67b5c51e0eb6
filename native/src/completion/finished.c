/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of finished requests with `notify` of a completion queue: reading it, and polling until it has entries. */
#include <errno.h>

#include "base/clock.h"
#include "completion/completion_queue.h"
#include "completion/request_slots.h"
#include "object/domain.h"
#include "ofipy/request.h"
#include "progress/progress.h"
#include "progress/sleeper.h"
#include "progress/wait.h"

static int64_t pop_finished_requests(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max)
{
    struct ofp_list *node;
    int64_t taken = 0;

    while ((uint64_t)taken < max && (node = ofp_list_pop(&cq->finished))) {
        struct ofp_request *request = OFP_CONTAINER_OF(node, struct ofp_request, node);

        request->notify = false;
        requests[taken++] = ofpi_handle_of_request(request);
    }
    return taken;
}

int64_t ofp_cq_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max)
{
    int64_t result = ofpi_cq_enter(cq);

    if (result)
        return result;
    ofpi_sleeper_disarm_own(cq->domain, &cq->sleeper);
    if (ofp_list_empty(&cq->finished))
        ofpi_domain_progress(cq->domain, true);
    result = pop_finished_requests(cq, requests, max);
    ofpi_domain_leave(cq->domain);
    return result;
}

int64_t ofp_cq_take_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max)
{
    int64_t result = ofpi_cq_enter_as(cq, true);

    if (result)
        return result;
    result = pop_finished_requests(cq, requests, max);
    ofpi_domain_leave(cq->domain);
    return result;
}

static bool has_finished(const void *argument)
{
    const struct ofp_cq *cq = argument;

    return !ofp_list_empty(&cq->finished) || cq->closing;
}

static int spin_on_queue(struct ofp_cq *cq, uint64_t duration)
{
    struct ofpi_domain *domain = cq->domain;
    int result = ofpi_cq_enter(cq);

    if (result)
        return result;
    ofpi_sleeper_disarm_own(domain, &cq->sleeper);
    cq->waiting++;
    result = ofpi_domain_spin(domain, has_finished, cq, duration);
    cq->waiting--;
    if (cq->closing)
        result = -ECANCELED;
    ofpi_domain_leave(domain);
    return result;
}

int ofp_cq_spin(struct ofp_cq *const *queues, uint32_t count, uint64_t duration)
{
    uint64_t until = duration ? ofpi_clock_read() + duration : 0;

    if (count == 1)
        return spin_on_queue(queues[0], duration);
    do {
        for (uint32_t i = 0; i < count; i++) {
            int result = spin_on_queue(queues[i], 0);

            if (result)
                return result;
        }
    } while (until && ofpi_clock_read() < until);
    return 0;
}
