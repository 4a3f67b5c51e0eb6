/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of one kind over several endpoints in C, as in RDMA bandwidth programs. Each endpoint is a flow that has
 * `depth` operations in flight. Every `moderation`-th operation requests a completion, which stands for the whole
 * group. The loop runs in pieces of a fraction of a second, between which Python runs its signal handlers.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"
#include "base/check.h"

#define ROWS 64
/*
 * Duration of a piece, and the approximate interval of clock checks (ns): reading the clock costs a tenth of a short
 * operation.
 */
#define PIECE 200000000
#define LOOKS_APART 1000000

struct flow {
    uint64_t posted, over; /* operations */
    uint64_t receives_posted, received;
};

struct ofp_measure_pipeline {
    const struct ofp_measure_pipeline_attr *attr;
    struct flow *flows;
    uint64_t open;             /* flows, per direction, that are not finished */
    uint64_t started;          /* ns; 0: not started */
    uint64_t checked;          /* ns: the last clock check */
    uint32_t stride, to_check; /* rounds between two clock checks, and until the next one */
    uint64_t begun, ended;     /* groups of operations up to a completion: posted, and completed */
};

static uint64_t choose_smaller_count(uint64_t one, uint64_t other) { return one < other ? one : other; }

/* Whether operation `number` of a flow is the last of its group. */
static bool is_group_end(const struct ofp_measure_pipeline_attr *attr, uint64_t number)
{
    return (number + 1) % attr->moderation == 0 || number + 1 == attr->iterations;
}

static void store_post_time(struct ofp_measure_pipeline *pipeline, uint64_t number)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;

    if (attr->posted && number % attr->moderation == 0)
        attr->posted[pipeline->begun++] = ofpi_clock_read() - pipeline->started;
}

/* Post the next operations of a flow with one call. */
static int post_list(struct ofp_measure_pipeline *pipeline, uint32_t index, uint64_t count)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct ofp_operation ops[OFP_PIPELINE_LIST];
    struct flow *flow = &pipeline->flows[index];

    for (uint64_t i = 0; i < count; i++) {
        ops[i] = attr->operations[index];
        ops[i].context = index;
        if (is_group_end(attr, flow->posted + i))
            ops[i].flags |= OFP_COMPLETION | OFP_DELIVERY_COMPLETE;
        store_post_time(pipeline, flow->posted + i);
    }
    flow->posted += count;
    return ofpi_measure_post(attr->endpoints[index], ops, count);
}

static int post_flow(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct flow *flow = &pipeline->flows[index];
    int result = 0;

    while (!result) {
        uint64_t space =
            choose_smaller_count(attr->depth - (flow->posted - flow->over), attr->iterations - flow->posted);

        OFPI_CHECK(flow->over <= flow->posted && flow->posted <= attr->iterations);
        if (!space)
            break;
        result = post_list(pipeline, index, choose_smaller_count(space, attr->list));
    }
    return result;
}

static int handle_receive(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct flow *flow = &pipeline->flows[index];
    struct ofp_operation receive;

    if (!attr->receives || flow->received == attr->iterations)
        return -EINVAL;
    receive = attr->receives[index];
    if (++flow->received == attr->iterations)
        pipeline->open--;
    if (flow->receives_posted == attr->iterations)
        return 0;
    flow->receives_posted++;
    receive.context = index;
    return ofpi_measure_post(attr->endpoints[index], &receive, 1);
}

static int handle_group(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct flow *flow = &pipeline->flows[index];
    uint64_t over = choose_smaller_count(flow->over + attr->moderation, attr->iterations);

    if (flow->over == attr->iterations || over > flow->posted)
        return -EINVAL;
    if (attr->completed)
        attr->completed[pipeline->ended++] = ofpi_clock_read() - pipeline->started;
    flow->over = over;
    if (over == attr->iterations)
        pipeline->open--;
    return 0;
}

/* The queue may contain completions of other operations, and endpoints may complete each operation of a group. */
static int handle_completion(struct ofp_measure_pipeline *pipeline, const struct ofp_completion *row)
{
    if (row->error)
        return -row->error;
    if (row->context >= pipeline->attr->count)
        return -EINVAL;
    if (row->flags & OFP_COMPLETED_RECV)
        return handle_receive(pipeline, (uint32_t)row->context);
    return handle_group(pipeline, (uint32_t)row->context);
}

static int read_pipeline_completions(struct ofp_measure_pipeline *pipeline)
{
    struct ofp_completion rows[ROWS];
    bool expired;
    int64_t count = ofpi_measure_core.cq_wait(pipeline->attr->cq, rows, ROWS, 1, -1, &expired);
    int result = count < 0 ? (int)count : 0;

    /* No completion for a second: return to the caller, which checks for signals. */
    if (!count)
        return -EINTR;
    for (int64_t i = 0; i < count && !result; i++)
        result = handle_completion(pipeline, &rows[i]);
    return result;
}

/* Whether the piece that started at `begun` has lasted long enough. It reads the clock only every `stride` rounds. */
static bool is_piece_over(struct ofp_measure_pipeline *pipeline, uint64_t begun)
{
    uint64_t now;

    if (--pipeline->to_check)
        return false;
    now = ofpi_clock_read();
    pipeline->stride = now - pipeline->checked < LOOKS_APART ? 2 * pipeline->stride : 1;
    pipeline->checked = now;
    pipeline->to_check = pipeline->stride;
    return now - begun >= PIECE;
}

static int run_piece(struct ofp_measure_pipeline *pipeline)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    uint64_t begun = ofpi_clock_read();
    int result = 0;

    if (!pipeline->started)
        pipeline->started = begun;
    pipeline->checked = begun;
    pipeline->stride = pipeline->to_check = 1;
    while (pipeline->open && !result) {
        for (uint32_t i = 0; attr->operations && i < attr->count && !result; i++)
            result = post_flow(pipeline, i);
        if (!result)
            result = read_pipeline_completions(pipeline);
        if (!result && pipeline->open && is_piece_over(pipeline, begun))
            result = -EINTR;
    }
    return result;
}

int ofp_measure_pipeline_open(const struct ofp_measure_pipeline_attr *attr, struct ofp_measure_pipeline **result)
{
    struct ofp_measure_pipeline *pipeline;

    /* A group that is larger than the depth would wait for its own end. */
    if (!attr->count || !attr->iterations || !attr->list || attr->list > OFP_PIPELINE_LIST || !attr->moderation ||
        attr->moderation > attr->depth)
        return -EINVAL;
    pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline)
        return -ENOMEM;
    pipeline->attr = attr;
    pipeline->flows = calloc(attr->count, sizeof(*pipeline->flows));
    if (!pipeline->flows) {
        free(pipeline);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < attr->count; i++)
        pipeline->flows[i].receives_posted = choose_smaller_count(attr->receive_depth, attr->iterations);
    pipeline->open = (uint64_t)attr->count * ((attr->operations ? 1 : 0) + (attr->receives ? 1 : 0));
    *result = pipeline;
    return 0;
}

int64_t ofp_measure_pipeline_run(struct ofp_measure_pipeline *pipeline)
{
    int result = run_piece(pipeline);

    return result ? result : (int64_t)(ofpi_clock_read() - pipeline->started);
}

void ofp_measure_pipeline_close(struct ofp_measure_pipeline *pipeline)
{
    free(pipeline->flows);
    free(pipeline);
}
