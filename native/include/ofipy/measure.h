/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Benchmark loops in C over the core's public calls, to measure the core's cost without Python. They are not part of
 * the core.
 */
#ifndef OFP_MEASURE_H
#define OFP_MEASURE_H

#include "ofipy/ofp.h"

/*
 * The core's functions that the loops call. The loops are in a shared object of their own that contains no core, so the
 * caller passes the functions of the core that opened the endpoints: once, before the first loop over an endpoint. The
 * table is copied.
 */
struct ofp_measure_calls {
    int64_t (*post)(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count);
    int64_t (*cq_read)(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max);
    int64_t (*cq_wait)(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max, uint64_t min, int64_t timeout,
                       bool *expired);
    int (*domain_progress)(struct ofp_domain *domain);
    int (*start)(ofp_request_t request, uint32_t how, int64_t timeout);
    int (*request_take)(ofp_request_t request, int64_t timeout, struct ofp_completion *completion);
};
void ofp_measure_bind(const struct ofp_measure_calls *calls);

struct ofp_measure_attr {
    struct ofp_endpoint *endpoint;
    struct ofp_cq *cq;
    uint32_t peer;
    bool first; /* this side sends first */
    uint64_t tag;
    /* ofp_measure_pingpong: increment of the tag for each message, and how much higher the peer's first tag is. */
    uint64_t tag_step, tag_ahead;
    void *send_buffer;
    void *receive_buffer;
    uint64_t length; /* bytes of a message */
    uint64_t iterations;
    uint64_t *nanoseconds; /* `iterations` entries: time of each round trip or window; may be NULL */
    uint64_t remote_offset, remote_key;
    /* Region of each buffer, and the buffer's offset in the region; OFP_REGION_PROCESS: not registered. */
    uint64_t send_offset, receive_offset;
    uint32_t send_region, receive_region;
    bool untagged;
    uint64_t flags; /* of sends and writes: a completion level; 0: inject if the provider does so */
    uint16_t op;    /* ofp_measure_rma: OFP_WRITE from send_buffer, or OFP_READ into receive_buffer */
    /* ofp_measure_rma: operations in flight at once; ofp_measure_stream: messages of a window. */
    uint32_t depth;
};
/* A ping-pong of messages. Returns elapsed ns, or an error. */
int64_t ofp_measure_pingpong(const struct ofp_measure_attr *attr);
/*
 * Windows of `depth` tagged messages in one direction: from send_buffer of the side with `first` into receive_buffer of
 * the other side, which answers each window with an empty message. Returns elapsed ns, or an error.
 */
int64_t ofp_measure_stream(const struct ofp_measure_attr *attr);
/*
 * A ping-pong of writes. Each side increments the 64-bit number in the last 8 bytes of send_buffer, which both sides
 * start with the same value, writes all of send_buffer to the peer's remote memory, and spins until the number arrives
 * in its own receive_buffer. If the length is no multiple of 8, the number is the last byte. Returns elapsed ns, or an
 * error.
 */
int64_t ofp_measure_write(const struct ofp_measure_attr *attr);
/* Writes or reads until all have completed, `depth` at once; the peer calls nothing. Returns as above. */
int64_t ofp_measure_rma(const struct ofp_measure_attr *attr);
/* Fetch-adds of a 64-bit number of the peer's, one after the other; the peer calls nothing. Returns as above. */
int64_t ofp_measure_fetch_add(const struct ofp_measure_attr *attr);
/* Start prepared requests in their order, and wait for them, again and again. Returns as above. */
int64_t ofp_measure_prepared(const ofp_request_t *requests, uint64_t count, uint64_t iterations);
#define OFP_PIPELINE_LIST 64 /* operations of one post, at most */
struct ofp_measure_pipeline_attr {
    struct ofp_endpoint *const *endpoints; /* `count` of them */
    struct ofp_cq *cq;                     /* of all these endpoints, and of no others */
    uint32_t count;
    const struct ofp_operation *operations; /* one for each endpoint, executed `iterations` times; NULL: none */
    /* One for each endpoint; NULL: none. `receive_depth` stay posted, with the endpoint's index as context. */
    const struct ofp_operation *receives;
    uint64_t iterations;
    uint32_t depth;         /* operations in flight of each endpoint */
    uint32_t receive_depth; /* receives posted of each endpoint */
    uint32_t list;          /* operations of one post, up to OFP_PIPELINE_LIST */
    /* Group size, at most `depth`: the last operation of each group, and of all, has a completion, at delivery. */
    uint32_t moderation;
    /* Nanoseconds after the start at which each group was posted, and completed, in order; may be NULL. */
    uint64_t *posted, *completed;
};
/*
 * Operations of one kind over several endpoints, with receives for those of the peer. If `moderation` is above 1, the
 * endpoints have selective completion. The caller owns `attr` and all that it points to, and leaves it unchanged until
 * close.
 *
 * Run returns elapsed ns, or an error. It returns -EINTR after a fraction of a second, after a second without a
 * completion, or on a signal: the caller then runs it again, or closes it and abandons the operations in flight.
 */
struct ofp_measure_pipeline;
int ofp_measure_pipeline_open(const struct ofp_measure_pipeline_attr *attr, struct ofp_measure_pipeline **pipeline);
int64_t ofp_measure_pipeline_run(struct ofp_measure_pipeline *pipeline);
void ofp_measure_pipeline_close(struct ofp_measure_pipeline *pipeline);
struct ofp_measure_socket_attr {
    int fd; /* a connected, non-blocking stream socket; the caller owns it */
    bool first;
    const void *send_buffer;
    void *receive_buffer;
    uint64_t length; /* bytes of a message, not 0 */
    uint64_t iterations;
    uint64_t *nanoseconds; /* as above */
}; /* ofp_measure_pingpong and ofp_measure_stream over a socket, spinning, for comparison. */
int64_t ofp_measure_socket_pingpong(const struct ofp_measure_socket_attr *attr);
int64_t ofp_measure_socket_stream(const struct ofp_measure_socket_attr *attr);
/*
 * Matching alone, without a transport: `depth` receives stay posted (mode "unexpected": messages stay unreceived) while
 * `iterations` messages of 8 bytes arrive, match, complete and are replaced. Modes: "expected", "unexpected",
 * "same-tag", "any-source", "masked". Returns elapsed ns, or an error.
 */
int64_t ofp_measure_match(const char *mode, uint64_t depth, uint64_t iterations);
/*
 * Pass a cache line from processor core `here` to core `there` and back, `turns` times. The calling thread runs on
 * `here` meanwhile. Returns elapsed ns, or an error: -EINVAL if the two are the same, or the process may not use them.
 */
int64_t ofp_measure_handover(uint32_t here, uint32_t there, uint64_t turns);

#endif
