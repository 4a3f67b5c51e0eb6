/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable messages, RMA and atomics over a packet channel: everything that a provider needs to offer endpoints of
 * type RDM over a channel.
 *
 * A provider's table of endpoints begins with OFPI_RDM_ENDPOINT_OPS and adds `open`, `name` and its other members.
 * Its `open` creates the channel and calls ofpi_rdm_open. The provider's private part of an endpoint is behind this
 * module's.
 */
#ifndef OFPI_RDM_ENDPOINT_H
#define OFPI_RDM_ENDPOINT_H

#include "rdm/transfer/rdm.h"
#include "rdm/transfer/send.h"

struct ofpi_rdm_attr {
    const struct ofp_core *core;
    const char *provider; /* name of the provider, for the log */
    const struct ofpi_channel_ops *ops;
    struct ofpi_channel_limits limits;
    void *private;            /* stored in the channel */
    uint64_t connect_timeout; /* ns */
};

/* Call it from the provider's `open`. After an error nothing has to be closed. */
int ofpi_rdm_open(struct ofp_endpoint *endpoint, const struct ofpi_rdm_attr *attr, char *text, size_t text_size);
/* Length of the longest eager message: inject_size of an info. */
uint64_t ofpi_rdm_eager_compute_size(const struct ofpi_channel_limits *limits);

static inline void *ofpi_rdm_private_of(const struct ofp_endpoint *endpoint)
{
    return ofpi_rdm_endpoint_of(endpoint) + 1;
}

/* Members of ofp_endpoint_ops. */
int ofpi_rdm_drain(struct ofp_endpoint *endpoint);
uint64_t ofpi_rdm_peer_count_unsent(const struct ofp_peer *peer);
void ofpi_rdm_close(struct ofp_endpoint *endpoint, uint64_t deadline);
int ofpi_rdm_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
void ofpi_rdm_peer_disconnect(struct ofp_peer *peer);
int ofpi_rdm_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
void ofpi_rdm_flush(struct ofp_endpoint *endpoint);
void ofpi_rdm_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive);
int ofpi_rdm_progress(struct ofp_endpoint *endpoint);
bool ofpi_rdm_arm(struct ofp_endpoint *endpoint);
void ofpi_rdm_disarm(struct ofp_endpoint *endpoint);

#define OFPI_RDM_ENDPOINT_OPS(own_size)                                                                                \
    .size = sizeof(struct ofp_endpoint_ops), .endpoint_size = sizeof(struct ofpi_rdm_endpoint) + (own_size),           \
    .peer_size = sizeof(struct ofpi_rdm_peer), .drain = ofpi_rdm_drain, .unsent = ofpi_rdm_peer_count_unsent,          \
    .close = ofpi_rdm_close, .connect = ofpi_rdm_peer_connect, .peer_down = ofpi_rdm_peer_disconnect,                  \
    .internal_channel = true, .moves_layouts = true, .post = ofpi_rdm_post, .flush = ofpi_rdm_flush,                   \
    .receive_start = ofpi_rdm_receive_start, .progress = ofpi_rdm_progress, .arm = ofpi_rdm_arm,                       \
    .disarm = ofpi_rdm_disarm, .protocol_choose = ofpi_rdm_protocol_choose

#endif
