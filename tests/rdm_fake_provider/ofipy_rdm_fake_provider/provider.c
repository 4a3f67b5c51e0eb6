/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of one process over a packet channel of this process: native/rdm without a device. A domain for each kind
 * of channel: "packets" has nothing else, "puts" moves memory one way, "gets" both.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "memory.h"
#include "rdm/transfer/endpoint.h"

#define ADDRESS_MAGIC 0x666d6472u /* "rdmf" */
#define CONNECT_SECONDS 10
#define REMOTE (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE | OFP_ACCESS_DEVICE_ATOMIC)

const struct ofp_core *rdmfake_core;

static const char *const kind_names[RDMFAKE_KINDS] = {"packets", "puts", "gets"};

static const struct ofp_param params[] = {
    {"RDMFAKE_PACKET_SIZE", OFP_PARAM_SIZE, "8k", "Packets of the rdmfake provider, bytes", OFPI_RDM_PACKET_MIN,
     1 << 20},
    {"RDMFAKE_RECEIVE_SIZE", OFP_PARAM_SIZE, "1536", "Receive buffers of an endpoint of the rdmfake provider",
     OFPI_CREDIT_POOL_LEAST, 1 << 20},
    {"RDMFAKE_MOVE_TIME", OFP_PARAM_SIZE, "0", "Time that the rdmfake provider takes to move memory, microseconds", 0,
     1000000},
    {"RDMFAKE_NO_REGIONS", OFP_PARAM_BOOL, "0", "Whether the rdmfake provider refuses to register memory for peers", 0,
     0},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* Room for a hundred peers; small otherwise, so that each limit is reached. */
static struct ofpi_channel_limits limits_now(void)
{
    return (struct ofpi_channel_limits){
        .packet_size = (uint32_t)rdmfake_core->param_size("RDMFAKE_PACKET_SIZE"),
        .receive_size = (uint32_t)rdmfake_core->param_size("RDMFAKE_RECEIVE_SIZE"),
        .send_size = 128,
        .path_window = 64,
        .inline_size = 64,
        .move_size = 65536,
    };
}

static enum rdmfake_kind kind_of(const struct ofp_info *info) { return (enum rdmfake_kind)info->provider_data[0]; }

/* -------------------------------------------------------------------------------------------------------- discovery */

#define ALL_ORDERS                                                                                                     \
    (OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_RAS | OFP_ORDER_WAR | OFP_ORDER_WAW | OFP_ORDER_WAS | OFP_ORDER_SAR |   \
     OFP_ORDER_SAW | OFP_ORDER_SAS)
#define BYTE_ORDERS (OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW)

static const uint64_t msg_orders[RDMFAKE_KINDS] = {
    [RDMFAKE_PACKETS] = ALL_ORDERS,
    [RDMFAKE_PUTS] = OFP_ORDER_SAS,
    [RDMFAKE_GETS] = OFP_ORDER_SAS | OFP_ORDER_SAW,
};

static void fill_info(struct ofp_info *info, enum rdmfake_kind kind)
{
    struct ofpi_channel_limits limits = limits_now();
    bool alone = kind == RDMFAKE_PACKETS;

    *info = (struct ofp_info){
        .provider = "rdmfake",
        .fabric = "rdmfake",
        .protocol = "ofipy-rdm",
        .protocol_version = OFPI_RDM_VERSION,
        .ep_types = OFP_EP_RDM,
        /* Of a device's gets and puts the target never hears. */
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | OFP_CAP_ATOMIC | OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE |
                (alone ? OFP_CAP_RMA_EVENT : 0) | (kind == RDMFAKE_GETS ? OFP_CAP_DEVICE_ATOMIC : 0),
        .msg_order = msg_orders[kind],
        .rma_order = alone ? BYTE_ORDERS : 0,
        .atomic_order = BYTE_ORDERS,
        .max_msg_size = 1u << 30,
        .max_rma_size = 1u << 30,
        .max_atomic_size = 1u << 20,
        .inject_size = ofpi_rdm_eager_compute_size(&limits),
        .tx_size = rdmfake_core->param_size("TX_QUEUE"),
        .rx_size = UINT32_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .remote_segment_limit = OFP_SEGMENT_LIMIT,
        .mr_key_size = 8,
        .cq_data_size = 8,
        .address_format = OFP_ADDRESS_OPAQUE,
        .wait_fd = 1,
        .rank = kind,
        .provider_data = {kind},
    };
    snprintf(info->domain, sizeof(info->domain), "%s", kind_names[kind]);
}

static int rdmfake_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    int count = max < RDMFAKE_KINDS ? max : RDMFAKE_KINDS;

    (void)text, (void)text_size;
    for (int i = 0; i < count; i++)
        fill_info(&infos[i], (enum rdmfake_kind)i);
    return count;
}

static int rdmfake_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op,
                                uint32_t datatype, uint64_t *count)
{
    uint32_t op = operation_code & ~OFP_DEVICE_ATOMIC;

    (void)info;
    if (op == operation_code)
        return -ENOSYS;
    *count = 1;
    if (datatype != OFP_INT64 && datatype != OFP_UINT64)
        return -EOPNOTSUPP;
    return atomic_op == (op == OFP_COMPARE_ATOMIC ? OFP_ATOMIC_CSWAP : OFP_ATOMIC_SUM) ? 0 : -EOPNOTSUPP;
}

/* -------------------------------------------------------------------------------------------------------- addresses */

static int make_address(const char *service, struct rdmfake_address *address, char *text, size_t text_size)
{
    size_t length = strlen(service);

    memset(address, 0, sizeof(*address));
    if (length == 0 || length >= RDMFAKE_SERVICE_SIZE) {
        snprintf(text, text_size, "a service of the rdmfake provider is 1 to %d characters long",
                 RDMFAKE_SERVICE_SIZE - 1);
        return -EINVAL;
    }
    address->magic = ADDRESS_MAGIC;
    address->process = (uint32_t)getpid();
    memcpy(address->service, service, length);
    return 0;
}

static bool is_this_host(const char *node)
{
    char host[256] = "";

    if (!node || !node[0] || strcasecmp(node, "localhost") == 0 || strcmp(node, "127.0.0.1") == 0 ||
        strcmp(node, "::1") == 0)
        return true;
    return gethostname(host, sizeof(host) - 1) == 0 && strcasecmp(node, host) == 0;
}

static int rdmfake_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length, char *text, size_t text_size)
{
    struct rdmfake_address made;
    size_t room = *length;
    int result;

    (void)info;
    if (!is_this_host(node)) {
        snprintf(text, text_size, "the rdmfake provider reaches this process only, not %s", node);
        return -EHOSTUNREACH;
    }
    if (!service) {
        snprintf(text, text_size, "the rdmfake provider needs the service of the peer");
        return -EINVAL;
    }
    result = make_address(service, &made, text, text_size);
    if (result)
        return result;
    *length = sizeof(made);
    if (room < sizeof(made))
        return -OFP_ETOOSMALL;
    memcpy(address, &made, sizeof(made));
    return 0;
}

static int rdmfake_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    (void)info;
    if (is_this_host(node))
        return 0;
    snprintf(text, text_size, "the rdmfake provider knows this host as localhost and by its name, not as %s", node);
    return -EHOSTUNREACH;
}

static int rdmfake_address_check(const struct ofp_info *info, const void *blob, size_t length)
{
    struct rdmfake_address address;

    (void)info;
    if (length != sizeof(address))
        return -EINVAL;
    memcpy(&address, blob, sizeof(address));
    if (address.magic != ADDRESS_MAGIC || !address.service[0] || address.service[RDMFAKE_SERVICE_SIZE - 1])
        return -EINVAL;
    return 0;
}

static int rdmfake_address_format(const struct ofp_info *info, const void *blob, size_t length, char *text,
                                  size_t text_size)
{
    struct rdmfake_address address;
    int result = rdmfake_address_check(info, blob, length);

    if (result)
        return result;
    memcpy(&address, blob, sizeof(address));
    result = snprintf(text, text_size, "localhost:%s", address.service);
    return (size_t)result < text_size ? 0 : -OFP_ETOOSMALL;
}

/* ---------------------------------------------------------------------------------------------------------- regions */

/* As devices do: a key of its own for each region, by which peers name addresses. */
static int region_open(struct ofp_domain *domain, struct ofp_region *region)
{
    struct ofp_region_device *ours = ofp_region_device(domain, region);
    uint64_t address = (uintptr_t)region->base;
    int result;

    if (kind_of(domain->info) == RDMFAKE_PACKETS || region->key_fixed || !(region->access & REMOTE))
        return 0;
    if (rdmfake_core->param_bool("RDMFAKE_NO_REGIONS")) {
        rdmfake_core->explain("it refuses all memory; unset OFIPY_RDMFAKE_NO_REGIONS");
        return -ENOMEM;
    }
    ours->key = 0;
    result = rdmfake_memory_add(rdmfake_owner(domain), region->base, address, region->length, region->access & REMOTE,
                                &ours->key);
    ours->remote_base = result ? 0 : address;
    return result;
}

static void region_close(struct ofp_domain *domain, struct ofp_region *region)
{
    if (ofp_region_device(domain, region)->remote_base)
        rdmfake_memory_remove(rdmfake_owner(domain), ofp_region_device(domain, region)->key);
}

/* -------------------------------------------------------------------------------------------------------- endpoints */

/* It only has to wake the domain: progress follows. */
static void doorbell_rang(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    rdmfake_port_silence(OFP_CONTAINER_OF(watch, struct rdmfake_endpoint, doorbell)->port);
}

static int open_port(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    struct rdmfake_endpoint *self = ofpi_rdm_private_of(endpoint);
    struct rdmfake_address address;
    int result = make_address(service ? service : "any", &address, text, text_size);

    if (!result)
        result = rdmfake_port_open(&address, !service, self->doorbell.fd, rdmfake_owner(endpoint->domain), &self->port);
    if (result == -EADDRINUSE)
        snprintf(text, text_size, "another endpoint of this process has the service %s", service);
    return result;
}

static int open_endpoint(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    struct rdmfake_endpoint *self = ofpi_rdm_private_of(endpoint);
    struct ofpi_rdm_attr attr = {.core = rdmfake_core,
                                 .provider = "rdmfake",
                                 .ops = &rdmfake_channel_ops[kind_of(endpoint->info)],
                                 .limits = limits_now(),
                                 .private = self,
                                 .connect_timeout = CONNECT_SECONDS * 1000000000ull};
    int result;

    ofp_list_init(&self->buffers);
    ofp_list_init(&self->moves);
    self->move_ns = rdmfake_core->param_size("RDMFAKE_MOVE_TIME") * 1000;
    self->doorbell = (struct ofp_watch){.events = EPOLLIN, .ready = doorbell_rang};
    self->doorbell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->doorbell.fd < 0)
        return -errno;
    result = rdmfake_core->watch_add(endpoint->domain, &self->doorbell);
    if (result)
        goto no_watch;
    result = open_port(endpoint, service, text, text_size);
    if (result)
        goto no_port;
    result = ofpi_rdm_open(endpoint, &attr, text, text_size);
    if (!result)
        return 0;
    rdmfake_port_close(self->port);
no_port:
    rdmfake_core->watch_remove(endpoint->domain, &self->doorbell);
no_watch:
    close(self->doorbell.fd);
    return result;
}

static int name_endpoint(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    const struct rdmfake_endpoint *self = ofpi_rdm_private_of(endpoint);
    size_t room = *length;

    *length = sizeof(self->port->address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &self->port->address, *length);
    return 0;
}

static const struct ofp_endpoint_ops endpoint_ops = {
    OFPI_RDM_ENDPOINT_OPS(sizeof(struct rdmfake_endpoint)),
    .open = open_endpoint,
    .name = name_endpoint,
};

static const struct ofp_endpoint_ops *rdmfake_endpoint_ops(const struct ofp_info *info)
{
    (void)info;
    return &endpoint_ops;
}

/* ------------------------------------------------------------------------------------------------------------ entry */

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .region_open = region_open,
    .region_close = region_close,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = 0 << 16 | 1,
    .name = "rdmfake",
    .description = "reliable endpoints over a packet channel within one process, for tests",
    .params = params,
    .getinfo = rdmfake_getinfo,
    .resolve = rdmfake_resolve,
    .address_check = rdmfake_address_check,
    .address_format = rdmfake_address_format,
    .at_node = rdmfake_at_node,
    .atomic_query = rdmfake_atomic_query,
    .domain_ops = &domain_ops,
    .endpoint_ops = rdmfake_endpoint_ops,
};

static void watch_forks(void) { pthread_atfork(NULL, NULL, rdmfake_forget); }

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    rdmfake_core = core;
    pthread_once(&once, watch_forks);
    return &provider;
}
