/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of one kind over several endpoints in C, as RDMA's bandwidth programs do: each endpoint is a lane that keeps
 * so many under way, and every so manieth asks for a completion, which stands for those before it. It runs in pieces of a
 * fraction of a second, between which Python runs its signal handlers.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

#define ROWS 64
/* Of a piece (ns), and about how often the clock is looked at: that costs a tenth of a short operation. */
#define PIECE 200000000
#define LOOKS_APART 1000000

struct lane {
    uint64_t posted, over; /* of the operations */
    uint64_t receives_posted, received;
};

struct ofp_measure_pipeline {
    const struct ofp_measure_pipeline_attr *attr;
    struct lane *lanes;
    uint64_t open;            /* lanes, in either direction, with something left to do */
    uint64_t started;         /* 0: not yet */
    uint64_t looked;          /* at the clock, last */
    uint32_t stride, to_look; /* rounds between two looks, and until the next one */
    uint64_t begun, ended;    /* groups: what is posted up to a completion, and the completion */
};

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

/* Whether operation `number` of a lane ends its group. */
static bool ends_group(const struct ofp_measure_pipeline_attr *attr, uint64_t number)
{
    return (number + 1) % attr->moderation == 0 || number + 1 == attr->iterations;
}

static void note_post(struct ofp_measure_pipeline *pipeline, uint64_t number)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;

    if (attr->posted && number % attr->moderation == 0)
        attr->posted[pipeline->begun++] = ofpi_clock_read() - pipeline->started;
}

/* The next few of a lane, in one post. */
static int post_list(struct ofp_measure_pipeline *pipeline, uint32_t index, uint64_t count)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct ofp_operation ops[OFP_PIPELINE_LIST];
    struct lane *lane = &pipeline->lanes[index];

    for (uint64_t i = 0; i < count; i++) {
        ops[i] = attr->operations[index];
        ops[i].context = index;
        if (ends_group(attr, lane->posted + i))
            ops[i].flags |= OFP_COMPLETION | OFP_DELIVERY_COMPLETE;
        note_post(pipeline, lane->posted + i);
    }
    lane->posted += count;
    return ofpi_measure_post(attr->endpoints[index], ops, count);
}

static int fill(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct lane *lane = &pipeline->lanes[index];
    int result = 0;

    while (!result) {
        uint64_t room = least(attr->depth - (lane->posted - lane->over), attr->iterations - lane->posted);

        if (!room)
            break;
        result = post_list(pipeline, index, least(room, attr->list));
    }
    return result;
}

static int take_receive(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct lane *lane = &pipeline->lanes[index];
    struct ofp_operation receive;

    if (!attr->receives || lane->received == attr->iterations)
        return -EINVAL;
    receive = attr->receives[index];
    if (++lane->received == attr->iterations)
        pipeline->open--;
    if (lane->receives_posted == attr->iterations)
        return 0;
    lane->receives_posted++;
    receive.context = index;
    return ofpi_measure_post(attr->endpoints[index], &receive, 1);
}

static int take_group(struct ofp_measure_pipeline *pipeline, uint32_t index)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    struct lane *lane = &pipeline->lanes[index];
    uint64_t over = least(lane->over + attr->moderation, attr->iterations);

    if (lane->over == attr->iterations || over > lane->posted)
        return -EINVAL;
    if (attr->completed)
        attr->completed[pipeline->ended++] = ofpi_clock_read() - pipeline->started;
    lane->over = over;
    if (over == attr->iterations)
        pipeline->open--;
    return 0;
}

/* The queue may have rows that are none of these operations', and endpoints that complete each of a group. */
static int take_row(struct ofp_measure_pipeline *pipeline, const struct ofp_completion *row)
{
    if (row->error)
        return -row->error;
    if (row->context >= pipeline->attr->count)
        return -EINVAL;
    if (row->flags & OFP_COMPLETED_RECV)
        return take_receive(pipeline, (uint32_t)row->context);
    return take_group(pipeline, (uint32_t)row->context);
}

static int take(struct ofp_measure_pipeline *pipeline)
{
    struct ofp_completion rows[ROWS];
    bool expired;
    int64_t count = ofpi_measure_core.cq_wait(pipeline->attr->cq, rows, ROWS, 1, -1, &expired);
    int result = count < 0 ? (int)count : 0;

    /* A second without any: the caller looks whether to go on. */
    if (!count)
        return -EINTR;
    for (int64_t i = 0; i < count && !result; i++)
        result = take_row(pipeline, &rows[i]);
    return result;
}

/* Whether the piece that began at `begun` is over. */
static bool is_over(struct ofp_measure_pipeline *pipeline, uint64_t begun)
{
    uint64_t now;

    if (--pipeline->to_look)
        return false;
    now = ofpi_clock_read();
    pipeline->stride = now - pipeline->looked < LOOKS_APART ? 2 * pipeline->stride : 1;
    pipeline->looked = now;
    pipeline->to_look = pipeline->stride;
    return now - begun >= PIECE;
}

static int run(struct ofp_measure_pipeline *pipeline)
{
    const struct ofp_measure_pipeline_attr *attr = pipeline->attr;
    uint64_t begun = ofpi_clock_read();
    int result = 0;

    if (!pipeline->started)
        pipeline->started = begun;
    pipeline->looked = begun;
    pipeline->stride = pipeline->to_look = 1;
    while (pipeline->open && !result) {
        for (uint32_t i = 0; attr->operations && i < attr->count && !result; i++)
            result = fill(pipeline, i);
        if (!result)
            result = take(pipeline);
        if (!result && pipeline->open && is_over(pipeline, begun))
            result = -EINTR;
    }
    return result;
}

int ofp_measure_pipeline_open(const struct ofp_measure_pipeline_attr *attr, struct ofp_measure_pipeline **result)
{
    struct ofp_measure_pipeline *pipeline;

    /* A group that does not fit would wait for its own end. */
    if (!attr->count || !attr->iterations || !attr->list || attr->list > OFP_PIPELINE_LIST || !attr->moderation ||
        attr->moderation > attr->depth)
        return -EINVAL;
    pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline)
        return -ENOMEM;
    pipeline->attr = attr;
    pipeline->lanes = calloc(attr->count, sizeof(*pipeline->lanes));
    if (!pipeline->lanes) {
        free(pipeline);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < attr->count; i++)
        pipeline->lanes[i].receives_posted = least(attr->receive_depth, attr->iterations);
    pipeline->open = (uint64_t)attr->count * ((attr->operations ? 1 : 0) + (attr->receives ? 1 : 0));
    *result = pipeline;
    return 0;
}

int64_t ofp_measure_pipeline_run(struct ofp_measure_pipeline *pipeline)
{
    int result = run(pipeline);

    return result ? result : (int64_t)(ofpi_clock_read() - pipeline->started);
}

void ofp_measure_pipeline_close(struct ofp_measure_pipeline *pipeline)
{
    free(pipeline->lanes);
    free(pipeline);
}
