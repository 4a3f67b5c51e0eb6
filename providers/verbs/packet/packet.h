/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet channel of RDM endpoints: a queue pair for each path, and one completion queue and one shared receive
 * queue for all paths. The domain's lock guards everything. See docs/explanation/verbs.md.
 *
 *     endpoint ── id              receives connection requests
 *              ├─ cq, srq         of all paths
 *              └─ paths ── id, qp until the device has no work of the path
 */
#ifndef VERBS_PACKET_H
#define VERBS_PACKET_H

#include "objects.h"
#include "packet/buffers.h"
#include "packet/prove.h"
#include "rdm/transfer/endpoint.h"

/* The largest number of work requests of a path's send queue. */
#define VERBS_PATH_DEPTH 128

/* Follows the module's part of an endpoint; the channel's `private`. */
struct verbs_rdm {
    struct verbs_listener listener; /* of requests */
    struct ofpi_channel *channel;   /* NULL until the channel is open */
    struct verbs_domain *domain;
    struct rdma_cm_id *id; /* NULL: requests are not accepted any more */
    union tcp_address address;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct verbs_registration *packets;
    uint32_t depth;            /* of each path's send queue */
    uint32_t cq_size;          /* entries of the completion queue */
    uint32_t cq_reserved;      /* of them, those that may be needed at once */
    bool armed;                /* the completion queue is armed; this is its context */
    struct ofp_list paths;     /* struct verbs_path, from init_path to remove_path */
    struct ofp_list scheduled; /* paths whose end is reported when the completion queue is empty */
    struct verbs_path **by_number;
    uint32_t numbers, buckets; /* paths in it, and its buckets, a power of two */
    struct ofp_timer alive;
    struct verbs_chain chain; /* of `chained`, if not empty */
    struct verbs_path *chained;
    struct verbs_challenges *challenges; /* NULL: the domain has no key */
    uint64_t refused_at;                 /* when a refused caller was last logged as a warning */
    uint64_t deferred_at;                /* when a caller that may try again was last logged at INFO */
    uint64_t deferred;                   /* such callers */
    /* Of a device that loses buffers: */
    struct verbs_buffers buffers;     /* buffers.all is owned; NULL: the device loses none */
    struct ofpi_packet *first_packet; /* the packets are an array, by their index */
    _Atomic bool destroyed;           /* some queue pair of `buffers.holders` is destroyed */
    bool holders_end;                 /* some of them is `ending` */
    uint32_t usable;                  /* as counted in the domain, as the next member */
    uint64_t reclaimed;
    uint64_t stale; /* rejections because the connection manager knew the queue pair already */
};

/* A queue pair that may have a buffer. It is freed when it can have none: its path ends earlier. */
struct verbs_pair_holder {
    struct verbs_holder base;
    struct verbs_qp_end end;
    bool ending; /* the queue pair was destroyed before the completions were read last */
};

enum verbs_path_state {
    VERBS_PATH_REQUESTED, /* our request is not answered */
    VERBS_PATH_ACCEPTED,  /* the request was accepted, but not confirmed */
    VERBS_PATH_UP,
    VERBS_PATH_FAILED, /* its end is reported, or will be */
    VERBS_PATH_CLOSED  /* its user has closed it; messages still leave */
};

/* struct ofpi_path.private. */
struct verbs_path {
    struct verbs_listener listener; /* of its id */
    struct ofp_list node;           /* in rdm->paths */
    struct ofp_list scheduled;      /* in rdm->scheduled, or in no list */
    struct verbs_path *next;        /* in the same bucket */
    struct ofpi_path *base;
    struct verbs_rdm *rdm;
    struct rdma_cm_id *id; /* NULL, as qp: released */
    struct ibv_qp *qp;
    struct verbs_qp_context *qp_context; /* of the queue pair; freed with it */
    struct verbs_pair_holder *holder;    /* of the queue pair; NULL: the device loses no buffers */
    struct ofpi_meeting_end end;         /* of a failed path */
    struct rdma_cm_id *probe;            /* asks whether the peer listens */
    struct ibv_qp *probe_pair;           /* its number names the probe; NULL, as `probe`: none */
    struct verbs_listener probe_listener;
    struct ofp_timer probe_deadline;
    /* The peer has disconnected, and reads or writes are awaited. */
    struct ofp_timer answer;
    uint32_t number; /* of the queue pair */
    uint8_t state;   /* enum verbs_path_state */
    bool stopped;    /* the device has no work for it */
    bool connected;  /* the queue pair is connected */
    bool received;   /* a packet since the last keep-alive */
    uint8_t responder_resources, initiator_depth;
    struct verbs_facts *facts; /* owned; of the challenge that was received; NULL: none, or the path is up */
    struct ofpi_keyring *ring; /* one user, of a caller until the path is up; NULL: then, or without a key */
    uint32_t key_number;       /* of the ring's key that this caller proves */
    uint8_t request_data_length;
    uint8_t request_data[1 + VERBS_PRIVATE_MAX];
    struct verbs_send_queue queue;
    uint64_t checked_head;            /* queue.head at the last keep-alive */
    uint32_t moves;                   /* reads and writes in flight */
    void *sends[VERBS_PATH_DEPTH];    /* of the queue: packet or cookie of a work request, or NULL */
    bool completed[VERBS_PATH_DEPTH]; /* of the queue: whether the packet completes operations */
};

static inline struct verbs_rdm *verbs_rdm_of(const struct ofpi_channel *channel) { return channel->private; }
static inline struct verbs_path *verbs_path_of(const struct ofpi_path *path) { return path->private; }

#endif
