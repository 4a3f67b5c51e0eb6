/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender of a message. libfabric does not report a sender that is not in the receiver's address vector (only a few
 * providers support FI_SOURCE_ERR), so a server could not answer a new client. Therefore an endpoint states its name in
 * the remote CQ data of its messages, where the user has put none, until it has received from the peer, which then has
 * its address, and again after a send to that peer has failed. IPv4 addresses and shm's own names fit there. As with
 * everything in a message, the name is only what the sender states. Only messages carry a name: data of a write are
 * always the user's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"
#include "ofipy/sender.h"

#define SHM_INDEX_BITS 16

/* The name that shm gives an endpoint without a service. */
static size_t format_shm_name(uint64_t sender, char *name, size_t size)
{
    return (size_t)snprintf(name, size, "fi_shm://%u:%u:%u", (unsigned)(sender >> SHM_INDEX_BITS), (unsigned)getuid(),
                            (unsigned)(sender & ((1 << SHM_INDEX_BITS) - 1))) +
           1;
}

static uint64_t encode_shm_sender(const char *address, size_t length)
{
    char again[OFP_ADDRESS_MAX];
    unsigned process, index;
    uint64_t sender;

    if (address[length - 1] || sscanf(address, "fi_shm://%u:%*u:%u", &process, &index) != 2)
        return 0;
    sender = (uint64_t)process << SHM_INDEX_BITS | index;
    return format_shm_name(sender, again, sizeof(again)) == length && strcmp(again, address) == 0 ? sender : 0;
}

/* Encode an address of the endpoint's kind in 48 bits; 0: it does not fit. */
static uint64_t encode_sender(const struct ofp_endpoint *endpoint, const void *address, size_t length)
{
    struct sockaddr_in ipv4;

    if (endpoint->info->address_format == OFP_ADDRESS_OPAQUE)
        return length ? encode_shm_sender(address, length) : 0;
    if (endpoint->info->address_format != OFP_ADDRESS_IPV4 || length != sizeof(ipv4))
        return 0;
    memcpy(&ipv4, address, sizeof(ipv4));
    return ipv4.sin_addr.s_addr == INADDR_ANY ? 0 : ofp_sender_of_ipv4(&ipv4);
}

void bridge_sender_open(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    uint64_t sender;

    if (!bridge_core->param_bool("OFI_NAME_SENDERS") || !(endpoint->info->caps & OFP_CAP_SOURCE) ||
        endpoint->info->cq_data_size < sizeof(uint64_t) || endpoint->ops->name(endpoint, address, &length) != 0)
        return;
    self->accepts_names = true;
    sender = encode_sender(endpoint, address, length);
    self->name = sender ? ofp_sender_name(sender) : 0;
}

/* The peer with a name, which may be new to the core. NULL: out of memory. */
static struct ofp_peer *find_named_peer(struct ofp_endpoint *endpoint, uint64_t sender)
{
    struct sockaddr_in ipv4 = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)(sender >> 32)), .sin_addr.s_addr = htonl((uint32_t)sender)};
    char name[OFP_ADDRESS_MAX];

    if (endpoint->info->address_format == OFP_ADDRESS_IPV4)
        return ofp_peer_by_address(endpoint, &ipv4, sizeof(ipv4));
    return ofp_peer_by_address(endpoint, name, format_shm_name(sender, name, sizeof(name)));
}

/* The data of an internal message are the core's. */
static bool is_internal(const struct bridge_endpoint *self, const struct lf_cq_entry *entry)
{
    const struct bridge_block *block = entry->op_context;

    return block && block->tagged && entry->tag & self->internal_bit;
}

struct ofp_peer *bridge_sender_resolve(struct ofp_endpoint *endpoint, struct lf_cq_entry *entry, uint64_t address)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct ofp_peer *source = bridge_peer_find(self, address);
    bool may_name = self->accepts_names && entry->flags & LF_REMOTE_CQ_DATA && entry->flags & LF_RECV &&
                    !(self->internal_bit && is_internal(self, entry));
    uint64_t sender = may_name ? ofp_sender_of(entry->data) : 0;

    if (sender && !source) {
        source = find_named_peer(endpoint, sender);
        entry->flags &= ~LF_REMOTE_CQ_DATA;
    } else if (sender && encode_sender(endpoint, source->address, source->address_length) == sender) {
        entry->flags &= ~LF_REMOTE_CQ_DATA;
    }
    if (source)
        bridge_peer_of(source)->reached = bridge_peer_of(source)->has_sent = true;
    return source;
}
