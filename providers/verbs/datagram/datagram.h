/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram endpoints, with a queue pair of type UD each. A message is one packet and may be lost. It arrives in a
 * receive buffer of the endpoint, behind 40 bytes that contain its sender's address, and the core matches it. Sent
 * messages are short and are copied.
 */
#ifndef VERBS_DATAGRAM_H
#define VERBS_DATAGRAM_H

#include "datagram/address.h"

#define VERBS_GRH_SIZE 40
/* The queue key of libfabric's endpoints. */
#define VERBS_QKEY 0x11111111

struct verbs_datagram_send {
    struct ofp_pending *pending; /* NULL: completed for the core */
    struct verbs_slot *slot;     /* NULL: sent inline */
};

/* Guarded by the domain's lock. */
struct verbs_datagram {
    struct ofp_endpoint *base;
    struct verbs_domain *domain;
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct verbs_qp_context qp_context;
    bool armed; /* the completion queue is armed; this is its context */
    struct verbs_datagram_address address;
    int gid_index;       /* index of the address's GID */
    uint32_t generation; /* counts resets of the queue pair; completions of an older generation are ignored */
    uint32_t limit;      /* the largest message, bytes */
    bool dead;           /* the device was removed, or the queue pair cannot be reset */
    uint32_t inline_size;
    uint32_t buffer_size, buffer_count;
    char *buffers; /* receive buffers; all but those being delivered are posted */
    struct ibv_mr *buffers_mr;
    struct verbs_send_queue queue;     /* every work request asks for a completion */
    struct verbs_datagram_send *sends; /* of the queue */
};

struct verbs_datagram_peer {
    struct verbs_search *search; /* in progress for the handle, or NULL */
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
