/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram endpoints: a queue pair of type UD each. A message is one packet, which comes or not; 40 bytes stand in front of it
 * where it arrives, which say where it is from. It arrives in rooms of the endpoint's own, and the core matches it, so that receives are
 * what they are elsewhere. What is sent is short, and copied.
 */
#ifndef VERBS_DATAGRAM_H
#define VERBS_DATAGRAM_H

#include "datagram/address.h"

#define VERBS_GRH_SIZE 40
/* libfabric's endpoints have it. */
#define VERBS_QKEY 0x11111111

struct verbs_datagram_send {
    struct ofp_pending *pending; /* NULL: it is finished for the core */
    struct verbs_slot *slot;     /* NULL: inline */
};

/* All are guarded by the domain's lock. */
struct verbs_datagram {
    struct ofp_endpoint *base;
    struct verbs_domain *domain;
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct verbs_qp_context qp_context;
    bool armed; /* the completion queue's context: it will tell */
    struct verbs_datagram_address address;
    int gid_index;       /* of the address */
    uint32_t generation; /* how often the queue pair was begun anew; what ends of an earlier life is not ours */
    uint32_t limit;      /* bytes of a message */
    bool dead;           /* the device is gone */
    uint32_t inline_size;
    uint32_t buffer_size, buffer_count;
    char *buffers; /* for messages, posted all of them but for those that are looked at */
    struct ibv_mr *buffers_mr;
    struct verbs_send_queue queue;     /* every work request asks for a completion */
    struct verbs_datagram_send *sends; /* of the queue */
};

struct verbs_datagram_peer {
    struct verbs_search *search; /* for the handle; NULL: it is over */
    struct ibv_ah *handle;
    uint32_t qpn;
};

static inline struct verbs_datagram *verbs_datagram_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}

/* The largest message over a port, bytes. */
uint32_t verbs_datagram_compute_limit(const struct verbs_port *port);
extern const struct ofp_endpoint_ops verbs_datagram_ops;

#endif
