/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that the measuring loops share. */
#include <errno.h>

#include "domain.h"
#include "measure.h"

#define ROWS 64

int ofpi_measure_post(struct ofp_endpoint *endpoint, const struct ofp_operation *ops, uint64_t count)
{
    while (count) {
        int64_t accepted = ofp_post(endpoint, ops, count);

        if (accepted < 0 && accepted != -EAGAIN)
            return (int)accepted;
        if (accepted > 0) {
            ops += accepted;
            count -= (uint64_t)accepted;
        }
        if (count)
            ofp_domain_progress(endpoint->domain);
    }
    return 0;
}

int ofpi_measure_take(struct ofp_cq *cq, uint64_t *receives_open, uint64_t *others_open)
{
    struct ofp_completion rows[ROWS];
    bool expired;
    int64_t count = ofp_cq_wait(cq, rows, ROWS, 1, -1, &expired);

    for (int64_t i = 0; i < count; i++) {
        if (rows[i].error)
            return -rows[i].error;
        if (rows[i].flags & OFP_COMPLETED_RECV)
            --*receives_open;
        else
            --*others_open;
    }
    return count < 0 ? (int)count : 0;
}

static struct ofp_operation operation(const struct ofp_measure_attr *attr, uint16_t op, const void *buffer,
                                      uint64_t length)
{
    return (struct ofp_operation){
        .op = op, .peer = attr->peer, .tag = attr->tag, .offset = (uint64_t)(uintptr_t)buffer, .length = length};
}

struct ofp_operation ofpi_measure_tsend(const struct ofp_measure_attr *attr, uint64_t length)
{
    struct ofp_operation op = operation(attr, OFP_TSEND, attr->send_buffer, length);

    if (length <= attr->endpoint->info->inject_size)
        op.flags = OFP_INJECT;
    return op;
}

struct ofp_operation ofpi_measure_trecv(const struct ofp_measure_attr *attr, uint64_t length)
{
    return operation(attr, OFP_TRECV, attr->receive_buffer, length);
}
