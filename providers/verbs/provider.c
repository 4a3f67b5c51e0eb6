/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's tables, parameters and domains. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "address/interface.h"
#include "connection/channel.h"
#include "connection/reaper.h"
#include "datagram/finder.h"
#include "datagram/datagram.h"
#include "device/describe.h"
#include "device/device.h"
#include "device/event.h"
#include "device/obstacle.h"
#include "device/place.h"
#include "endpoint/lifecycle.h"
#include "endpoint/msg.h"
#include "endpoint/passive.h"
#include "memory/memory.h"
#include "memory/slot.h"
#include "addresses.h"
#include "objects.h"
#include "packet/channel.h"
#include "queue/atomic.h"
#include "queue/complete.h"
#include "queue/fault.h"
#include "queue/receive.h"
#include "queue/send.h"

#define PROVIDER_VERSION 0x00010000u
#define DEPTH_MAX 65536

const struct ofp_core *verbs_core;

static const struct ofp_param params[] = {
    {"VERBS_DEVICE", OFP_PARAM_STRING, "", "Name of the device to use, as in ibv_devices; default: any", 0, 0},
    {"VERBS_PORT", OFP_PARAM_INT, "0", "Port of the device; 0: any that is up", 0, UINT8_MAX},
    {"VERBS_GID_INDEX", OFP_PARAM_INT, "-1",
     "Only addresses whose GID is at this place of the port's table (see `ofipy info -p verbs --verbose`); -1: any", -1,
     1023},
    {"VERBS_PKEY_INDEX", OFP_PARAM_INT, "-1", "Place of the partition key in the port's table; -1: as the address says",
     -1, 1023},
    {"VERBS_TRAFFIC_CLASS", OFP_PARAM_INT, "-1", "Traffic class of what is sent (RoCE: DSCP and ECN); -1: the system's",
     -1, UINT8_MAX},
    {"VERBS_SERVICE_LEVEL", OFP_PARAM_INT, "-1", "Service level of what is sent; -1: as the path says", -1, 15},
    {"VERBS_PATH_MTU", OFP_PARAM_INT, "0", "Bytes of a packet: 256, 512, 1024, 2048 or 4096; 0: as the path says", 0,
     4096},
    {"VERBS_ACK_TIMEOUT", OFP_PARAM_INT, "-1",
     "How long the device waits for an acknowledgement: 4.096 us times two to the power of this; -1: as the path says",
     -1, 31},
    {"VERBS_RETRY_COUNT", OFP_PARAM_INT, "7",
     "Times that the device sends again what is not acknowledged; 7, which is for ever on Soft-RoCE, is 6 for RDM endpoints",
     0, 7},
    {"VERBS_MIN_RNR_TIMER", OFP_PARAM_INT, "12",
     "How long a peer waits that met no receive, in the code of the InfiniBand specification (12: 0.64 ms)", 0, 31},
    {"VERBS_TX_DEPTH", OFP_PARAM_INT, "256", "Work requests of a send queue, as far as the device has as many", 16,
     DEPTH_MAX},
    {"VERBS_RX_DEPTH", OFP_PARAM_INT, "256", "Receives that the device has at once; the others wait in the core", 16,
     DEPTH_MAX},
    {"VERBS_BOUNCE_SIZE", OFP_PARAM_SIZE, "8k",
     "Memory of an operation up to this is copied, where it is no region; longer memory is registered", 1024, 1 << 20},
    {"VERBS_CACHE_COUNT", OFP_PARAM_INT, "1024",
     "Registrations that are kept for later operations on the same memory, of one domain; 0: none", 0, OFP_COUNT_MAX},
    {"VERBS_CACHE_SIZE", OFP_PARAM_SIZE, "1g", "Bytes of memory that they cover at most", 0, OFP_BYTES_MAX},
    {"VERBS_RECEIVE_MEMORY", OFP_PARAM_SIZE, "256m",
     "Bytes that are registered for receives of an endpoint at a time; those beyond wait here for their turn", 0,
     OFP_BYTES_MAX},
    {"VERBS_PACKET_SIZE", OFP_PARAM_SIZE, "4224",
     "Bytes of a packet between RDM endpoints; longer messages are fetched from their sender's memory", 256, 1 << 20},
    {"VERBS_PACKET_BUFFERS", OFP_PARAM_SIZE, "1k",
     "Packets that an RDM endpoint has room to receive from all peers together, each of which needs six to twelve", 16,
     1 << 20},
    {"VERBS_KEEPALIVE", OFP_PARAM_INT, "10",
     "Seconds without traffic after which an RDM endpoint asks whether the peer is there; 0: never", 0, 86400},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* -------------------------------------------------------------------------------------------------------- settings */

static uint32_t get_depth(const char *name, const struct verbs_limits *limits)
{
    int64_t wanted = verbs_core->param_int(name);

    return wanted < limits->depth ? (uint32_t)wanted : limits->depth;
}

/* The code of a path MTU, or -1. */
static int encode_mtu(int64_t bytes)
{
    for (int code = IBV_MTU_256; code <= IBV_MTU_4096; code++)
        if (bytes == 128 << code)
            return code;
    if (bytes)
        verbs_core->log(OFP_LOG_WARNING, VERBS_NAME,
                        "OFIPY_VERBS_PATH_MTU=%" PRId64 ": 256, 512, 1024, 2048 or 4096 is meant; it has no effect",
                        bytes);
    return -1;
}

static void read_settings(struct verbs_domain *domain)
{
    domain->settings = (struct verbs_settings){
        .connect_ns = verbs_core->param_size("CONNECT_TIMEOUT") * VERBS_SECOND,
        .transmit_depth = get_depth("VERBS_TX_DEPTH", &domain->port->limits),
        .receive_depth = get_depth("VERBS_RX_DEPTH", &domain->port->limits),
        .receive_memory = verbs_core->param_size("VERBS_RECEIVE_MEMORY"),
        .retries = (uint8_t)verbs_core->param_int("VERBS_RETRY_COUNT"),
        .traffic_class = (int)verbs_core->param_int("VERBS_TRAFFIC_CLASS"),
        .service_level = (int)verbs_core->param_int("VERBS_SERVICE_LEVEL"),
        .path_mtu = encode_mtu(verbs_core->param_int("VERBS_PATH_MTU")),
        .ack_timeout = (int)verbs_core->param_int("VERBS_ACK_TIMEOUT"),
        .rnr_timer = (int)verbs_core->param_int("VERBS_MIN_RNR_TIMER"),
        .pkey = (int)verbs_core->param_int("VERBS_PKEY_INDEX"),
        .alive_ns = (uint64_t)verbs_core->param_int("VERBS_KEEPALIVE") * VERBS_SECOND,
    };
}

/* --------------------------------------------------------------------------------------------------------- domains */

static int open_completion_channel(struct verbs_domain *domain)
{
    int fd, result;

    domain->completions = verbs_calls.create_comp_channel(domain->port->context);
    if (!domain->completions)
        return -errno;
    fd = domain->completions->fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    domain->completion_watch =
        (struct ofp_watch){.fd = fd, .events = EPOLLIN, .ready = verbs_completion_channel_handle};
    result = verbs_core->watch_add(domain->base, &domain->completion_watch);
    if (result) {
        verbs_calls.destroy_comp_channel(domain->completions);
        domain->completions = NULL;
    }
    return result;
}

static void close_objects(struct verbs_domain *domain)
{
    verbs_finder_close(domain);
    verbs_reaper_close(domain);
    if (domain->completions) {
        verbs_core->watch_remove(domain->base, &domain->completion_watch);
        verbs_calls.destroy_comp_channel(domain->completions);
    }
    verbs_events_close(domain);
    verbs_slots_close(domain);
    if (domain->pd)
        verbs_calls.dealloc_pd(domain->pd);
    if (domain->events) {
        verbs_core->watch_remove(domain->base, &domain->event_watch);
        verbs_channel_close(domain);
    }
}

static int open_objects(struct verbs_domain *domain)
{
    int result;

    domain->pd = verbs_calls.alloc_pd(domain->port->context);
    verbs_cache_open(&domain->cache, domain->base, domain->pd, (uint32_t)verbs_core->param_int("VERBS_CACHE_COUNT"),
                     verbs_core->param_size("VERBS_CACHE_SIZE"));
    if (!domain->pd)
        return -errno;
    domain->slots.size = verbs_core->param_size("VERBS_BOUNCE_SIZE");
    if (domain->cache.most)
        domain->base->keeps_above = domain->base->info->inject_size;
    result = verbs_channel_open(domain);
    if (!result)
        result = open_completion_channel(domain);
    if (!result)
        result = verbs_events_open(domain);
    if (result)
        return result;
    domain->slots.overflow = verbs_slot_allocate(domain);
    return domain->slots.overflow ? 0 : -ENOMEM;
}

/* Only RDM endpoints prove a key. */
static int read_keys(struct verbs_domain *domain, char *text, size_t text_size)
{
    int result;

    if (!(domain->base->info->ep_types & OFP_EP_RDM))
        return 0;
    result = ofpi_key_files_open(&domain->keys, verbs_core->param_string("AUTH_KEY_FILE"),
                                 verbs_core->param_string("AUTH_KEY_FILE_ACCEPTED"), text, text_size);
    domain->has_key = domain->keys.ring != NULL;
    return result;
}

static int open_device(struct verbs_domain *domain, char *text, size_t text_size)
{
    const struct ofp_info *info = domain->base->info;
    int result;

    if (!verbs_library_load(text, text_size))
        return -ENOENT;
    verbs_info_get_address(info, &domain->address);
    domain->port = verbs_port_find(&domain->address, text, text_size);
    if (!domain->port) {
        if (!text[0])
            snprintf(text, text_size, "the device %s is gone, or its address", info->domain);
        return -ENODEV;
    }
    read_settings(domain);
    verbs_reaper_open(domain);
    verbs_finder_open(domain);
    result = open_objects(domain);
    if (result) {
        snprintf(text, text_size, "the device %s cannot be used: %s", info->domain, strerror(-result));
        close_objects(domain);
    }
    return result;
}

static int open_domain(struct ofp_domain *base, char *text, size_t text_size)
{
    struct verbs_domain *domain = verbs_domain_of(base);
    int result;

    domain->base = base;
    result = read_keys(domain, text, text_size);
    if (!result)
        result = open_device(domain, text, text_size);
    if (result)
        ofpi_key_files_close(&domain->keys);
    return result;
}

static void close_domain(struct ofp_domain *base)
{
    struct verbs_domain *domain = verbs_domain_of(base);

    close_objects(domain);
    ofpi_key_files_close(&domain->keys);
}

/* ------------------------------------------------------------------------------------------------------- discovery */

/* Fill what an info has from its place, for all endpoint types. */
static void fill_place(struct ofp_info *info, const struct verbs_place *place)
{
    bool many = place->port->device.phys_port_cnt > 1;
    bool v6 = place->interface.address.any.sa_family == AF_INET6;

    verbs_place_format_network(place, info->fabric, sizeof(info->fabric));
    snprintf(info->domain, sizeof(info->domain), many ? "%s:%u%s" : "%s%.0u%s", verbs_device_name_of(place->port),
             many ? place->port->number : 0, v6 ? "-ipv6" : "");
    verbs_info_set_address(info, &place->interface.address);
    if (verbs_interface_is_chosen())
        tcp_info_choose(info);
}

static void fill_msg(struct ofp_info *info, const struct verbs_place *place)
{
    const struct verbs_limits *limits = &place->port->limits;

    *info = (struct ofp_info){
        .provider = VERBS_NAME,
        .protocol = "verbs-rc",
        .protocol_version = 1,
        .ep_types = OFP_EP_MSG,
        .caps = OFP_CAP_MSG | OFP_CAP_RMA | OFP_CAP_LOCAL_COMM | OFP_CAP_REMOTE_COMM |
                (verbs_port_has_atomics(place->port) ? OFP_CAP_DEVICE_ATOMIC : 0),
        /*
         * One queue, in order. But the data of a read are fetched when the peer processes it, and no later operation
         * waits for that.
         */
        .msg_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_RAS | OFP_ORDER_WAW | OFP_ORDER_WAS | OFP_ORDER_SAW |
                     OFP_ORDER_SAS,
        .rma_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAW,
        .max_msg_size = limits->message_size,
        .max_rma_size = INT64_MAX / 2,
        .max_atomic_size = verbs_port_has_atomics(place->port) ? VERBS_ATOMIC_SIZE : 0,
        .remote_segment_limit = OFP_SEGMENT_LIMIT,
        .mr_key_size = sizeof(uint32_t),
        .inject_size = verbs_core->param_size("VERBS_BOUNCE_SIZE"),
        .tx_size = verbs_core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = limits->segments,
        .cq_data_size = sizeof(uint32_t),
        .max_private_data = VERBS_PRIVATE_MAX,
        .wait_fd = 1,
        .offloads_matching = 1,
    };
}

static void fill_datagram(struct ofp_info *info, const struct verbs_place *place)
{
    uint32_t limit = verbs_datagram_compute_limit(place->port);

    *info = (struct ofp_info){
        .provider = VERBS_NAME,
        .protocol = "verbs-ud",
        .protocol_version = 1,
        .ep_types = OFP_EP_DGRAM,
        .caps = OFP_CAP_MSG | OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE | OFP_CAP_LOCAL_COMM | OFP_CAP_REMOTE_COMM,
        .max_msg_size = limit,
        .inject_size = limit,
        .tx_size = verbs_core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .cq_data_size = sizeof(uint32_t),
        .wait_fd = 1,
    };
}

/* iWARP has no datagrams. */
static bool has_datagrams(const struct verbs_port *port)
{
    return port->context->device->transport_type != IBV_TRANSPORT_IWARP;
}

static void fill_rdm(struct ofp_info *info, const struct verbs_place *place)
{
    struct ofpi_channel_limits limits;

    verbs_packet_limits_compute(place->port, &limits);
    *info = (struct ofp_info){
        .provider = VERBS_NAME,
        .protocol = "ofipy-rdm",
        .protocol_version = OFPI_RDM_VERSION,
        .ep_types = OFP_EP_RDM,
        /* Reads and writes by the device cause no event at the target. */
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | OFP_CAP_ATOMIC | OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE |
                OFP_CAP_LOCAL_COMM | OFP_CAP_REMOTE_COMM |
                (verbs_port_has_atomics(place->port) ? OFP_CAP_DEVICE_ATOMIC : 0),
        .msg_order = OFP_ORDER_SAS | OFP_ORDER_SAW,
        .atomic_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW,
        .max_msg_size = INT64_MAX / 2,
        .max_rma_size = INT64_MAX / 2,
        .max_atomic_size = 1u << 20,
        .remote_segment_limit = OFP_SEGMENT_LIMIT,
        .mr_key_size = sizeof(uint64_t),
        .inject_size = ofpi_rdm_eager_compute_size(&limits),
        .tx_size = verbs_core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .cq_data_size = sizeof(uint64_t),
        .wait_fd = 1,
        /* The proof was not tried over iWARP, whose devices have no datagrams. */
        .peer_proof = has_datagrams(place->port) ? OFP_PROOF_KEY : OFP_PROOF_NONE,
    };
}

static void (*const kinds[])(struct ofp_info *info, const struct verbs_place *place) = {fill_rdm, fill_msg,
                                                                                        fill_datagram};

static int query_infos(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    struct verbs_place places[TCP_INTERFACES_MAX];
    int places_count, count = 0;
    char name[64];

    /*
     * Loading the libraries takes a millisecond, a quarter of the time to open the first endpoint without a device.
     */
    if (text_size <= 1 && !verbs_kernel_device_find(name, sizeof(name)))
        return 0;
    if (!verbs_library_load(text, text_size))
        return 0;
    places_count = verbs_places_find(places, text, text_size);
    if (!places_count && !text[0])
        verbs_obstacle_describe(text, text_size);
    /* Infos without connecting come first, since `open` chooses the first one. */
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
        for (int i = 0; i < places_count && count < max; i++) {
            if (kinds[kind] == fill_datagram && !has_datagrams(places[i].port))
                continue;
            kinds[kind](&infos[count], &places[i]);
            fill_place(&infos[count], &places[i]);
            infos[count].rank = (uint32_t)count;
            count++;
        }
    return count;
}

/* ---------------------------------------------------------------------------------------------------------- tables */

static const struct ofp_endpoint_ops msg_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct verbs_endpoint),
    .open = verbs_endpoint_open,
    .drain = verbs_endpoint_drain,
    .unsent = verbs_peer_count_unsent,
    .close = verbs_endpoint_close,
    .name = verbs_endpoint_get_address,
    .connect = verbs_msg_connect,
    .accept = verbs_msg_accept,
    .shutdown = verbs_msg_shutdown,
    .peer_down = verbs_msg_peer_disconnect,
    .post = verbs_endpoint_post,
    .flush = verbs_endpoint_flush,
    .cancel = verbs_receive_cancel,
    .progress = verbs_endpoint_progress,
    .arm = verbs_endpoint_arm,
    .disarm = verbs_endpoint_disarm,
    .needs_flush = verbs_peer_needs_flush,
    .marks_packets = true,
};

static const struct ofp_endpoint_ops *choose_endpoint_ops(const struct ofp_info *info)
{
    if (info->ep_types & OFP_EP_DGRAM)
        return &verbs_datagram_ops;
    return info->ep_types & OFP_EP_RDM ? &verbs_rdm_ops : &msg_ops;
}

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct verbs_domain),
    .open = open_domain,
    .close = close_domain,
    .region_open = verbs_region_open,
    .region_close = verbs_region_close,
    .region_disowned = verbs_region_disowned,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = PROVIDER_VERSION,
    .name = VERBS_NAME,
    .description = "RDMA devices (InfiniBand, RoCE) by libibverbs, as libfabric's verbs speaks to them",
    .params = params,
    .getinfo = query_infos,
    .resolve = verbs_address_resolve,
    .address_check = verbs_address_check,
    .address_format = verbs_address_format,
    .at_node = verbs_info_set_node,
    .reaches = verbs_address_check_route,
    .address_key = verbs_address_get_key,
    .address_relation = verbs_address_compare,
    .atomic_query = verbs_atomic_query,
    .error_text = verbs_code_find_text,
    .domain_ops = &domain_ops,
    .endpoint_ops = choose_endpoint_ops,
    .passive_ops = &verbs_passive_ops,
    .describe = verbs_info_describe,
};

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    verbs_core = core;
    core->hold_in_fork(&verbs_library_lock);
    core->hold_in_fork(&verbs_ports_lock);
    return &provider;
}
