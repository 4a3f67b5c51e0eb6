/* SPDX-License-Identifier: BSD-3-Clause */
#include "completion/request_finish.h"

#include "base/check.h"
#include "completion/completion_queue.h"
#include "completion/request_many.h"
#include "completion/request_slots.h"

void ofpi_request_finish(struct ofp_request *request, const struct ofp_completion *completion)
{
    OFPI_CHECK(request->many || ofp_load_relaxed(&request->state) == OFPI_REQUEST_RUNNING);
    if (__builtin_expect(request->many, 0) && !ofpi_request_many_complete(request, completion))
        return;
    request->completion = *completion;
    /* Pairs with the load-acquire in ofp_request_finished: a thread that reads FINISHED also reads the completion. */
    ofp_store_release(&request->state, OFPI_REQUEST_FINISHED);
    if (request->released) {
        request->domain->upper->request_released(request);
    } else if (request->notify && !ofp_list_linked(&request->node)) {
        /* A request can finish twice, as after a message was set aside for it. It may then be in the list already. */
        struct ofp_cq *cq = request->endpoint->rx_cq ? request->endpoint->rx_cq : request->endpoint->tx_cq;

        ofp_list_append(&cq->finished, &request->node);
        ofpi_cq_notify(cq);
    }
}
