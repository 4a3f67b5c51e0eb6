/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's tables, parameters and domains. Every table is constant; all state is in the objects of objects.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/key.h"
#include "connection/secure.h"
#include "endpoint/endpoint.h"
#include "address/interface.h"
#include "endpoint/msg.h"
#include "objects.h"
#include "endpoint/passive.h"
#include "message/post.h"
#include "message/rma.h"
#include "stream/queue.h"
#include "endpoint/rdm.h"
#include "message/rendezvous.h"
#include "address/resolve.h"
#include "stream/library.h"
#include "stream/socket.h"
#include "stream/tls.h"

#define PROVIDER_VERSION 0x00010000u
#define DAY_S 86400

const struct ofp_core *tcp_core;

static const struct ofp_param params[] = {
    {"TCP_INTERFACE", OFP_PARAM_STRING, "",
     "As OFIPY_INTERFACE, for tcp alone, and before it; default: the interface that leads to the world", 0, 0},
    {"TCP_PORT_LOW", OFP_PARAM_INT, "0", "First port for endpoints that ask for none; 0: the system's choice", 0,
     UINT16_MAX},
    {"TCP_PORT_HIGH", OFP_PARAM_INT, "0", "Last port for endpoints that ask for none", 0, UINT16_MAX},
    {"TCP_USER_TIMEOUT", OFP_PARAM_INT, "30", "Seconds without an acknowledgement after which a connection is lost", 1,
     DAY_S},
    {"TCP_CONGESTION_CONTROL", OFP_PARAM_STRING, "",
     "Congestion control of every connection; default: the system's, and reno between processes of one host", 0, 0},
    {"TCP_RENDEZVOUS_SIZE", OFP_PARAM_SIZE, "0",
     "Bytes, header included, beyond which a tagged message to libfabric waits there for its receive; 0: as "
     "FI_TCP_MAX_SAVED_SIZE says, else none",
     0, OFP_BYTES_MAX},
    {"TCP_EXTENSION", OFP_PARAM_BOOL, "yes", "Speak to other ofipy peers in more than libfabric's wire can say", 0, 0},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* --------------------------------------------------------------------------------------------------------- domains */

/* FI_TCP_MAX_SAVED_SIZE limits the unexpected messages that libfabric stores. Peers often share the environment. */
static uint64_t choose_rendezvous_size(void)
{
    uint64_t size = tcp_core->param_size("TCP_RENDEZVOUS_SIZE");
    const char *text = getenv("FI_TCP_MAX_SAVED_SIZE");
    char *end;

    if (size || !text || !text[0])
        return size ? size : UINT64_MAX;
    size = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && !*end)
        return size;
    tcp_core->log(OFP_LOG_WARNING, TCP_NAME, "FI_TCP_MAX_SAVED_SIZE=%s: a number of bytes is meant; it has no effect",
                  text);
    return UINT64_MAX;
}

static int open_domain(struct ofp_domain *base, char *text, size_t text_size)
{
    struct tcp_domain *domain = tcp_domain_of(base);
    int error;

    domain->base = base;
    domain->connect_ns = tcp_core->param_size("CONNECT_TIMEOUT") * TCP_SECOND;
    domain->user_timeout_ms = (unsigned)tcp_core->param_int("TCP_USER_TIMEOUT") * 1000;
    base->absence_limit = domain->user_timeout_ms * TCP_MILLISECOND;
    domain->rendezvous_size = choose_rendezvous_size();
    domain->extension = tcp_core->param_bool("TCP_EXTENSION");
    ofp_list_init(&domain->chunks);
    ofp_list_init(&domain->shared.members);
    error = ofpi_key_files_open(&domain->keys, tcp_core->param_string("AUTH_KEY_FILE"),
                                tcp_core->param_string("AUTH_KEY_FILE_ACCEPTED"), text, text_size);
    domain->extension |= tcp_domain_has_key(domain);
    if (!error)
        error = tcp_encryption_open(domain, text, text_size);
    if (!error)
        error = tcp_congestion_control_read(domain, text, text_size);
    if (error)
        ofpi_key_files_close(&domain->keys);
    return error;
}

static void close_domain(struct ofp_domain *base)
{
    tcp_chunks_free(tcp_domain_of(base));
    tcp_tls_context_free(tcp_domain_of(base)->tls);
    ofpi_key_files_close(&tcp_domain_of(base)->keys);
    free(tcp_domain_of(base)->scratch);
}

/* ------------------------------------------------------------------------------------------------------- discovery */

static void format_network(const struct tcp_interface *interface, char *text, size_t text_size)
{
    union tcp_address network = interface->address;
    char host[INET6_ADDRSTRLEN];
    size_t length;
    uint8_t *ip = (uint8_t *)(uintptr_t)tcp_address_get_ip(&network, &length);

    for (size_t i = 0; i < length; i++) {
        unsigned bits = interface->prefix > i * 8 ? interface->prefix - (unsigned)i * 8 : 0;

        if (bits < 8)
            ip[i] &= (uint8_t)(0xff00u >> bits);
    }
    inet_ntop(network.any.sa_family, ip, host, sizeof(host));
    snprintf(text, text_size, "%s/%u", host, interface->prefix);
}

static void fill_info(struct ofp_info *info, const struct tcp_interface *interface, uint32_t ep_type, uint32_t rank)
{
    bool v6 = interface->address.any.sa_family == AF_INET6;

    *info = (struct ofp_info){
        .provider = TCP_NAME,
        .protocol = "tcp",
        .protocol_version = ep_type == OFP_EP_RDM,
        .ep_types = ep_type,
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | OFP_CAP_ATOMIC | OFP_CAP_RMA_EVENT |
                OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE | OFP_CAP_LOCAL_COMM,
        /*
         * A connection is one stream, so requests stay in order. The answer to a long read leaves memory later, so WAR
         * and SAR are not provided.
         */
        .msg_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_RAS | OFP_ORDER_WAW | OFP_ORDER_WAS | OFP_ORDER_SAW |
                     OFP_ORDER_SAS,
        .rma_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAW,
        .atomic_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW,
        .max_msg_size = INT64_MAX / 2,
        .max_rma_size = INT64_MAX / 2,
        .max_atomic_size = TCP_ATOMIC_MAX,
        .remote_segment_limit = TCP_REMOTE_MAX,
        .mr_key_size = sizeof(uint64_t),
        .inject_size = TCP_COPY_MAX,
        .tx_size = tcp_core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .cq_data_size = sizeof(uint64_t),
        .max_private_data = ep_type == OFP_EP_MSG ? TCP_PRIVATE_MAX : 0,
        .wait_fd = 1,
        .rank = rank,
        .peer_proof = OFP_PROOF_KEY,
        .encryption = OFP_ENCRYPTION_TLS,
    };
    if (!tcp_address_is_loopback(&interface->address))
        info->caps |= OFP_CAP_REMOTE_COMM;
    format_network(interface, info->fabric, sizeof(info->fabric));
    snprintf(info->domain, sizeof(info->domain), "%s%s", interface->name, v6 ? "-ipv6" : "");
    tcp_info_set_address(info, &interface->address);
}

/* The interface that a parameter names. NULL: no parameter is set. */
static const char *find_wanted_interface(const char **parameter)
{
    static const char *const names[] = {"TCP_INTERFACE", "INTERFACE"};

    for (int i = 0; i < 2; i++) {
        const char *wanted = tcp_core->param_string(names[i]);

        *parameter = names[i];
        if (wanted && wanted[0])
            return wanted;
    }
    return NULL;
}

static int fill_infos_of_any(struct ofp_info *infos, int max)
{
    static const uint32_t types[] = {OFP_EP_RDM, OFP_EP_MSG};
    struct tcp_interface all = {.name = "any"};
    int count = 0;

    tcp_address_choose_any(&all.address);
    for (; count < 2 && count < max; count++) {
        fill_info(&infos[count], &all, types[count], (uint32_t)count);
        tcp_info_set_any(&infos[count], &all.address);
        tcp_info_choose(&infos[count]);
    }
    return count;
}

static int fill_infos(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    struct tcp_interface interfaces[TCP_INTERFACES_MAX];
    const char *parameter, *wanted = find_wanted_interface(&parameter);
    int count;

    if (wanted && strcmp(wanted, "any") == 0)
        return fill_infos_of_any(infos, max);
    count = tcp_interfaces_query(interfaces, wanted);
    if (count < 0)
        snprintf(text, text_size, "cannot list the interfaces: %s", strerror(-count));
    else if (count == 0 && wanted)
        snprintf(text, text_size, "OFIPY_%s=%s: no interface that is up has this name or address", parameter, wanted);
    else if (count == 0)
        snprintf(text, text_size, "no interface is up, not even the loopback one: ip link set lo up");
    if (count < 0)
        return 0;
    /* RDM infos come first: `open` uses the first info, and an RDM endpoint needs no connecting. */
    for (int i = 0; i < 2 * count && i < max; i++) {
        fill_info(&infos[i], &interfaces[i % count], i < count ? OFP_EP_RDM : OFP_EP_MSG, (uint32_t)i);
        if (wanted)
            tcp_info_choose(&infos[i]);
    }
    return 2 * count < max ? 2 * count : max;
}

static int check_address(const struct ofp_info *info, const void *address, size_t length)
{
    union tcp_address parsed;

    (void)info;
    return tcp_address_parse(address, length, &parsed);
}

static int format_address(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    (void)info;
    return tcp_address_format(address, length, text, text_size);
}

/* ---------------------------------------------------------------------------------------------------------- tables */

static const struct ofp_endpoint_ops rdm_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct tcp_endpoint),
    .peer_size = sizeof(struct tcp_peer),
    .open = tcp_rdm_open,
    .drain = tcp_endpoint_drain,
    .unsent = tcp_peer_count_unsent,
    .close = tcp_endpoint_close,
    .name = tcp_endpoint_get_address,
    .name_also = tcp_endpoint_get_other_address,
    .connect = tcp_peer_connect,
    .peer_down = tcp_peer_disconnect,
    .internal_channel = true,
    .moves_layouts = true,
    .marks_packets = true,
    .post = tcp_transfer_post,
    .flush = tcp_endpoint_flush,
    .receive_start = tcp_receive_start,
    .progress = tcp_endpoint_progress,
    .arm = tcp_endpoint_arm,
    .disarm = tcp_endpoint_disarm,
    .needs_flush = tcp_peer_needs_flush,
    .protocol_choose = tcp_protocol_choose,
};

static const struct ofp_endpoint_ops msg_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct tcp_endpoint),
    .peer_size = sizeof(struct tcp_peer),
    .open = tcp_msg_open,
    .drain = tcp_endpoint_drain,
    .unsent = tcp_peer_count_unsent,
    .close = tcp_endpoint_close,
    .name = tcp_endpoint_get_address,
    .connect = tcp_msg_connect,
    .accept = tcp_msg_accept,
    .shutdown = tcp_msg_shutdown,
    .peer_down = tcp_peer_disconnect,
    .internal_channel = true,
    .moves_layouts = true,
    .marks_packets = true,
    .post = tcp_transfer_post,
    .flush = tcp_endpoint_flush,
    .receive_start = tcp_receive_start,
    .progress = tcp_endpoint_progress,
    .arm = tcp_endpoint_arm,
    .disarm = tcp_endpoint_disarm,
    .needs_flush = tcp_peer_needs_flush,
    .protocol_choose = tcp_protocol_choose,
};

static const struct ofp_endpoint_ops *choose_endpoint_ops(const struct ofp_info *info)
{
    return info->ep_types == OFP_EP_MSG ? &msg_ops : &rdm_ops;
}

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct tcp_domain),
    .open = open_domain,
    .close = close_domain,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = PROVIDER_VERSION,
    .name = TCP_NAME,
    .description = "TCP, in the wire protocol of libfabric's tcp provider",
    .params = params,
    .getinfo = fill_infos,
    .resolve = tcp_address_resolve,
    .address_check = check_address,
    .address_format = format_address,
    .at_node = tcp_info_resolve_node,
    .reaches = tcp_address_check_reachable,
    .domain_ops = &domain_ops,
    .endpoint_ops = choose_endpoint_ops,
    .passive_ops = &tcp_passive_ops,
};

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    tcp_core = core;
    core->hold_in_fork(&tcp_library_lock);
    tcp_descriptors_watch_forks();
    return &provider;
}
