/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the measuring loops share. */
#include "measure.h"

#include <errno.h>

#include "ofipy/objects.h"
#include "ofipy/ofp.h"

#define ROWS 64

struct ofp_measure_calls ofpi_measure_core;

void ofp_measure_bind(const struct ofp_measure_calls *calls) { ofpi_measure_core = *calls; }

int ofpi_measure_post(struct ofp_endpoint *endpoint, const struct ofp_operation *ops, uint64_t count)
{
    while (count) {
        int64_t accepted = ofpi_measure_core.post(endpoint, ops, count);

        if (accepted < 0 && accepted != -EAGAIN)
            return (int)accepted;
        if (accepted > 0) {
            ops += accepted;
            count -= (uint64_t)accepted;
        }
        if (count)
            ofpi_measure_core.domain_progress(endpoint->domain);
    }
    return 0;
}

int ofpi_measure_completions_wait(struct ofp_cq *cq, uint64_t *receives_open, uint64_t *others_open)
{
    struct ofp_completion rows[ROWS];
    bool expired;
    int64_t count = ofpi_measure_core.cq_wait(cq, rows, ROWS, 1, -1, &expired);

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

static struct ofp_operation build_outgoing_operation(const struct ofp_measure_attr *attr, uint64_t length)
{
    struct ofp_operation op = {.peer = attr->peer,
                               .region = attr->send_region,
                               .offset = attr->send_region ? attr->send_offset : (uint64_t)(uintptr_t)attr->send_buffer,
                               .length = length,
                               .flags = attr->flags};

    if (!op.flags && length <= attr->endpoint->info->inject_size)
        op.flags = OFP_INJECT;
    return op;
}

static struct ofp_operation build_incoming_operation(const struct ofp_measure_attr *attr, uint64_t length)
{
    return (struct ofp_operation){.peer = attr->peer,
                                  .region = attr->receive_region,
                                  .offset = attr->receive_region ? attr->receive_offset
                                                                 : (uint64_t)(uintptr_t)attr->receive_buffer,
                                  .length = length};
}

struct ofp_operation ofpi_measure_send(const struct ofp_measure_attr *attr, uint64_t length)
{
    struct ofp_operation op = build_outgoing_operation(attr, length);

    op.op = attr->untagged ? OFP_SEND : OFP_TSEND;
    op.tag = attr->tag;
    return op;
}

struct ofp_operation ofpi_measure_recv(const struct ofp_measure_attr *attr, uint64_t length)
{
    struct ofp_operation op = build_incoming_operation(attr, length);

    op.op = attr->untagged ? OFP_RECV : OFP_TRECV;
    op.tag = attr->tag + attr->tag_ahead;
    return op;
}

struct ofp_operation ofpi_measure_remote(const struct ofp_measure_attr *attr, uint16_t code)
{
    struct ofp_operation op =
        code == OFP_READ ? build_incoming_operation(attr, attr->length) : build_outgoing_operation(attr, attr->length);

    op.op = code;
    op.remote_offset = attr->remote_offset;
    op.remote_key = attr->remote_key;
    return op;
}
