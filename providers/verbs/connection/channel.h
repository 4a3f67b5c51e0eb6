/* SPDX-License-Identifier: BSD-3-Clause */
/* The event channel of a domain's connection manager, and the private data of connections in libfabric's format. */
#ifndef VERBS_CHANNEL_H
#define VERBS_CHANNEL_H

#include "objects.h"

#define VERBS_RESOLVE_MS 2000
/*
 * Reasons of RDMA_CM_EVENT_REJECTED. The first is a rejection by the peer's program, all others come from its
 * connection manager.
 */
#define VERBS_REJECTED_BY_PROGRAM 28
#define VERBS_REJECTED_NO_SERVICE 8
#define VERBS_REJECTED_STALE 10

int verbs_channel_open(struct verbs_domain *domain);
/* All ids of the channel are closed before. */
void verbs_channel_close(struct verbs_domain *domain);

/*
 * Open an id at an address of the domain's device. `service` is the port number; without one, the port that was
 * assigned is stored in `address`. On an error `text` has the reason.
 */
int verbs_id_open(struct verbs_domain *domain, struct verbs_listener *listener, union tcp_address *address,
                  const char *service, struct rdma_cm_id **id, char *text, size_t text_size);
/* Mark packets with the endpoint's traffic class, if it has one. Call this before the peer's address is resolved. */
void verbs_id_set_traffic_class(struct rdma_cm_id *id, const struct ofp_endpoint *endpoint);
/* Get the address of the peer. */
void verbs_id_get_peer_address(struct rdma_cm_id *id, union tcp_address *address);

/* Write private data behind a byte with their length. Returns the number of bytes written: one more than `length`. */
uint8_t verbs_private_data_encode(uint8_t *bytes, const void *data, size_t length);
/*
 * Build the parameters of rdma_connect or rdma_accept. `bytes` are encoded private data; `qp` is NULL for a connection
 * that will never be established.
 */
struct rdma_conn_param verbs_parameters_build(const struct verbs_domain *domain, const struct ibv_qp *qp,
                                              const uint8_t *bytes, uint8_t length, uint8_t responder_resources,
                                              uint8_t initiator_depth);
static inline void verbs_resources_set_limit(uint8_t *value, uint8_t other)
{
    if (other < *value)
        *value = other;
}
/* Reject a connection request, or the answer to one. */
void verbs_id_reject(struct rdma_cm_id *id, const void *data, size_t length);

#endif
