/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Benchmark loops over the core's public calls, which measure the core's cost without Python. They are no part of the
 * core.
 */
#ifndef OFP_MEASURE_H
#define OFP_MEASURE_H

#include "ofipy/ofp.h"

/*
 * The core's calls that the loops make. The loops are a shared object of their own without a core, so their caller passes the
 * addresses of the core that opened the endpoints: once, before the first loop over an endpoint. The table is copied.
 */
struct ofp_measure_calls {
    int64_t (*post)(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count);
    int64_t (*cq_read)(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max);
    int64_t (*cq_wait)(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max, uint64_t min, int64_t timeout,
                       bool *expired);
    int (*domain_progress)(struct ofp_domain *domain);
};
void ofp_measure_bind(const struct ofp_measure_calls *calls);

struct ofp_measure_attr {
    struct ofp_endpoint *endpoint;
    struct ofp_cq *cq;
    uint32_t peer;
    bool first; /* this side sends first */
    uint64_t tag;
    /* ofp_measure_pingpong: added to the tag with each message, and by how much tags that come are higher at the start. */
    uint64_t tag_step, tag_ahead;
    void *send_buffer;
    void *receive_buffer;
    uint64_t length; /* bytes of a message */
    uint64_t iterations;
    uint64_t *nanoseconds; /* iterations entries: each round trip, or window; NULL: not wanted */
    uint64_t remote_offset, remote_key;
    /* Where the two buffers are registered, and from which byte of it on; OFP_REGION_PROCESS: nowhere. */
    uint64_t send_offset, receive_offset;
    uint32_t send_region, receive_region;
    bool untagged;
    uint64_t flags; /* of sends and writes: a level of completion, or 0: injected where the provider does so */
    uint16_t op;    /* ofp_measure_rma: OFP_WRITE from send_buffer, or OFP_READ into receive_buffer */
    uint32_t depth; /* ofp_measure_rma: as many are under way at once; ofp_measure_stream: messages of a window */
};
/* A ping-pong of messages in C over the public calls: what the core costs without Python. Returns elapsed ns, or an error. */
int64_t ofp_measure_pingpong(const struct ofp_measure_attr *attr);
/*
 * Windows of `depth` tagged messages one way, from send_buffer of the first side, all into receive_buffer of the second, and
 * an empty message back behind each. Returns elapsed ns, or an error.
 */
int64_t ofp_measure_stream(const struct ofp_measure_attr *attr);
/*
 * A ping-pong of writes: each side counts up the 64-bit number in the last 8 bytes of send_buffer, the same on both at the
 * start, writes all to the peer's remote memory and spins until the number is in its own, receive_buffer. Of a length that
 * is no multiple of 8 the number is the last byte. Returns elapsed ns, or an error.
 */
int64_t ofp_measure_write(const struct ofp_measure_attr *attr);
/* Writes or reads, each to its completion, `depth` at once; the peer does nothing. Returns elapsed ns, or an error. */
int64_t ofp_measure_rma(const struct ofp_measure_attr *attr);
/* Fetch-adds of a 64-bit number of the peer's, each until it has completed; the peer calls nothing. As above. */
int64_t ofp_measure_fetch_add(const struct ofp_measure_attr *attr);
#define OFP_PIPELINE_LIST 64 /* operations of one post, at most */
struct ofp_measure_pipeline_attr {
    struct ofp_endpoint *const *endpoints; /* `count` of them */
    struct ofp_cq *cq;                     /* of all of them, and nobody else's */
    uint32_t count;
    const struct ofp_operation *operations; /* one for each endpoint, done `iterations` times; NULL: none */
    const struct ofp_operation
        *receives; /* likewise; the first `receive_depth` are posted, with the endpoint's index */
    uint64_t iterations;
    uint32_t depth;         /* operations under way of each endpoint */
    uint32_t receive_depth; /* receives posted of each */
    uint32_t list;          /* operations of one post, up to OFP_PIPELINE_LIST */
    uint32_t moderation;    /* every so manieth has a completion, at delivery, and the last: a group; `depth` at most */
    uint64_t *posted, *completed; /* ns after the start, of every group in the order in which that happens; or NULL */
};
/*
 * Operations of one kind over several endpoints, with receives of what the peer's send meanwhile. Where `moderation` is above
 * 1 the endpoints have selective completion. `attr`, and all that it points to, stays the caller's, and as it is until close.
 *
 * Run returns elapsed ns, or an error; -EINTR after a fraction of a second, when nothing has come for a second, or on a signal: the
 * caller runs it again, or closes it and leaves what is under way.
 */
struct ofp_measure_pipeline;
int ofp_measure_pipeline_open(const struct ofp_measure_pipeline_attr *attr, struct ofp_measure_pipeline **pipeline);
int64_t ofp_measure_pipeline_run(struct ofp_measure_pipeline *pipeline);
void ofp_measure_pipeline_close(struct ofp_measure_pipeline *pipeline);
struct ofp_measure_socket_attr {
    int fd; /* a connected stream socket that does not block; the caller's */
    bool first;
    const void *send_buffer;
    void *receive_buffer;
    uint64_t length; /* bytes of a message, not 0 */
    uint64_t iterations;
    uint64_t *nanoseconds; /* as above */
}; /* The first two over a bare socket, spinning: what others are compared with. */
int64_t ofp_measure_socket_pingpong(const struct ofp_measure_socket_attr *attr);
int64_t ofp_measure_socket_stream(const struct ofp_measure_socket_attr *attr);
/*
 * Matching alone, without a transport: `depth` receives stay posted (mode "unexpected": messages stay unreceived) while
 * `iterations` messages of 8 bytes arrive, match, complete and are replaced. Modes: "expected", "unexpected", "same-tag",
 * "any-source", "masked". Returns elapsed ns, or an error.
 */
int64_t ofp_measure_match(const char *mode, uint64_t depth, uint64_t iterations);
/*
 * A cache line from core `here`, where the caller is put meanwhile, to core `there` and back, so many times. Returns elapsed ns,
 * or an error: -EINVAL where the two are one, or are not the process's.
 */
int64_t ofp_measure_handover(uint32_t here, uint32_t there, uint64_t turns);

#endif
