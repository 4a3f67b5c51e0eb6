/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel of a domain's connection events, and the private data that connections carry as libfabric's do. */
#ifndef VERBS_CHANNEL_H
#define VERBS_CHANNEL_H

#include "objects.h"

#define VERBS_RESOLVE_MS 2000
/* What the connection manager says when the other side's program said no; any other number is its own. */
#define VERBS_REJECTED_BY_PROGRAM 28
#define VERBS_REJECTED_NO_SERVICE 8
#define VERBS_REJECTED_STALE 10

int verbs_channel_open(struct verbs_domain *domain);
/* Every id is gone already. */
void verbs_channel_close(struct verbs_domain *domain);

/*
 * An id at an address of the domain's device; `service` is its port. Reasons for refusal go into `text`. Where no port was asked for,
 * `address` gets one.
 */
int verbs_id_open(struct verbs_domain *domain, struct verbs_listener *listener, union tcp_address *address,
                  const char *service, struct rdma_cm_id **id, char *text, size_t text_size);
/* The address of the other side. */
void verbs_id_get_peer_address(struct rdma_cm_id *id, union tcp_address *address);

/* A byte that says how much follows. Returns how many bytes were written. */
uint8_t verbs_private_data_encode(uint8_t bytes[1 + VERBS_PRIVATE_MAX], const void *data, size_t length);
/* What is asked of the other side, with data of `length` bytes as they go out; `qp` may be NULL where there will be none. */
struct rdma_conn_param verbs_parameters_build(const struct verbs_domain *domain, const struct ibv_qp *qp,
                                              const uint8_t *bytes, uint8_t length, uint8_t responder_resources,
                                              uint8_t initiator_depth);
static inline void verbs_resources_set_limit(uint8_t *value, uint8_t other)
{
    if (other < *value)
        *value = other;
}
/* Say no to a request. */
void verbs_id_reject(struct rdma_cm_id *id, const void *data, size_t length);

#endif
