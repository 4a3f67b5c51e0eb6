/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet channel of RDM endpoints: a queue pair for each path, one completion queue and one shared receive queue for all of
 * them. Everything is guarded by the domain's lock. docs/explanation/verbs.md
 *
 *     endpoint ── id              where peers ask
 *              ├─ cq, srq         of all paths
 *              └─ paths ── id, qp until nothing of the path is at the device
 */
#ifndef VERBS_PACKET_H
#define VERBS_PACKET_H

#include "objects.h"
#include "rdm/transfer/endpoint.h"

/* Work requests of a path's send queue, at most. */
#define VERBS_PATH_DEPTH 128
/* What is said with a request for a path: the port where who asks can be asked, and a user's hello. */
#define VERBS_HELLO_MAX (2 + OFPI_HELLO_MAX)

/* Behind the module's part of an endpoint; the channel's `private`. */
struct verbs_rdm {
    struct verbs_listener listener; /* of requests */
    struct ofpi_channel *channel;   /* set when it is open */
    struct verbs_domain *domain;
    struct rdma_cm_id *id; /* NULL: no requests are taken any more */
    union tcp_address address;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct verbs_registration *packets;
    uint32_t depth;            /* of a path's send queue */
    uint32_t cq_size;          /* entries that were asked for */
    uint32_t cq_reserved;      /* of them, those that somebody may need */
    bool armed;                /* the completion queue's context: it will tell */
    struct ofp_list paths;     /* struct verbs_path, from their beginning until `closed` */
    struct ofp_list scheduled; /* those that have something to tell once the completion queue is empty */
    struct verbs_path **by_number;
    uint32_t numbers, buckets; /* paths in it; lists that it consists of, a power of two */
    struct ofp_timer alive;
    struct verbs_chain chain; /* of `chained`, where there is something in it */
    struct verbs_path *chained;
};

enum verbs_path_state {
    VERBS_PATH_REQUESTED, /* by us */
    VERBS_PATH_ACCEPTED,  /* by us, and that is not confirmed */
    VERBS_PATH_UP,
    VERBS_PATH_FAILED, /* its user is told, or about to be */
    VERBS_PATH_CLOSED  /* by its user: what was sent still leaves */
};

/* struct ofpi_path.private. */
struct verbs_path {
    struct verbs_listener listener; /* of its id's events */
    struct ofp_list node;           /* rdm->paths */
    struct ofp_list scheduled;      /* rdm->scheduled, or in no list */
    struct verbs_path *next;        /* of the same bucket */
    struct ofpi_path *base;
    struct verbs_rdm *rdm;
    struct rdma_cm_id *id; /* NULL, as qp: it has let go of everything */
    struct ibv_qp *qp;
    struct verbs_qp_context *qp_context; /* goes with the queue pair */
    struct ofpi_path_end end;            /* of a failed one */
    struct rdma_cm_id *probe;            /* asks whether anybody is there */
    struct verbs_listener probe_listener;
    struct ofp_timer probe_deadline;
    /* The other side has left, and gets or puts are waited for. */
    struct ofp_timer answer;
    uint32_t number; /* of the queue pair */
    uint8_t state;   /* enum verbs_path_state */
    bool stopped;    /* the device has nothing to do for it any more */
    bool connected;  /* the queue pair is, to another */
    bool received;   /* of the peer, since keep-alive last looked */
    uint8_t responder_resources, initiator_depth;
    uint8_t request_data_length;
    uint8_t request_data[1 + VERBS_PRIVATE_MAX];
    struct verbs_send_queue queue;
    uint64_t checked_head;            /* head, when keep-alive last looked */
    uint32_t moves;                   /* gets and puts among them */
    void *sends[VERBS_PATH_DEPTH];    /* of the queue: what ends with a work request, or NULL */
    bool completed[VERBS_PATH_DEPTH]; /* beside them: of packets, what the packet says */
};

static inline struct verbs_rdm *verbs_rdm_of(const struct ofpi_channel *channel) { return channel->private; }
static inline struct verbs_path *verbs_path_of(const struct ofpi_path *path) { return path->private; }

#endif
