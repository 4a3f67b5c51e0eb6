/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's tables, parameters and domains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/address.h"
#include "connection/lifecycle.h"
#include "endpoint.h"
#include "link/process.h"
#include "link/table.h"
#include "memory/arena.h"
#include "memory/segment.h"
#include "message/method.h"
#include "message/pull.h"
#include "message/receive.h"
#include "message/send.h"
#include "shm.h"

#define PROVIDER_VERSION 0x00010000u
#define INJECT_SIZE 4096
#define MAX_ATOMIC_SIZE (UINT64_C(1) << 20)
_Static_assert(MAX_ATOMIC_SIZE <= SHM_PIECE, "an atomic operation is one visit, and is never begun twice");
#define BYTE_ORDER_OF_RMA (OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW)
#define SECOND UINT64_C(1000000000)

/* Index in info->provider_data, set when a domain opens: the host whose memory the domain shares. */
#define INFO_HOST 0

const struct ofp_core *shm_core;

static const struct ofp_param params[] = {
    {"SHM_RING_SIZE", OFP_PARAM_SIZE, "1024",
     "Slots of an endpoint's inbound ring, 128 bytes each; rounded up to a power of two", 1u << SHM_SLOT_SHIFT_MIN,
     1u << SHM_SLOT_SHIFT_MAX},
    {"SHM_BOUNCE_SIZE", OFP_PARAM_SIZE, "16k",
     "Bytes of a bounce buffer: the longest message that is sent through one; rounded down to a multiple of 64",
     SHM_BOUNCE_SIZE_MIN, SHM_BOUNCE_SIZE_MAX},
    {"SHM_BOUNCE_COUNT", OFP_PARAM_SIZE, "64", "Bounce buffers of an endpoint", 1, SHM_BOUNCE_COUNT_MAX},
    {"SHM_ATTACH", OFP_PARAM_ALWAYS, "yes",
     "Copy large messages straight out of the sender's memory (cross-memory attach) where the kernel allows it and "
     "that is the fastest way; always: never by the pipeline in place of it",
     0, 0},
    {"SHM_PTRACER", OFP_PARAM_BOOL, "no",
     "Allow every process of this user to attach to this one, where the Yama module "
     "allows only ancestors (PR_SET_PTRACER)",
     0, 0},
    {"SHM_PIDFD", OFP_PARAM_BOOL, "yes", "Watch peers by process descriptors; otherwise by a connection kept open", 0,
     0},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* --------------------------------------------------------------------------------------------------------- domains */

static void read_params(struct shm_domain *domain)
{
    uint32_t slots = (uint32_t)shm_core->param_size("SHM_RING_SIZE");

    domain->slot_shift = 32 - (uint32_t)__builtin_clz(slots - 1);
    domain->bounce_size = (uint32_t)shm_core->param_size("SHM_BOUNCE_SIZE") / SHM_CACHE_LINE * SHM_CACHE_LINE;
    domain->bounce_count = (uint32_t)shm_core->param_size("SHM_BOUNCE_COUNT");
    domain->connect_ns = shm_core->param_size("CONNECT_TIMEOUT") * SECOND;
    domain->attach = shm_core->param_int("SHM_ATTACH") > 0;
    domain->always_attach = shm_core->param_int("SHM_ATTACH") > 1;
    domain->pidfd = shm_core->param_bool("SHM_PIDFD");
    if (shm_core->param_bool("SHM_PTRACER"))
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

/* Clear the wake-up; progress finds its reason. */
static void read_event_fd(struct ofp_watch *watch, uint32_t events)
{
    uint64_t count;
    ssize_t ignored = read(watch->fd, &count, sizeof(count));

    (void)ignored;
    (void)events;
}

static int open_domain(struct ofp_domain *base, char *text, size_t text_size)
{
    struct shm_domain *domain = shm_domain_of(base);
    int error = shm_core->host_id(&domain->host, text, text_size);

    if (error)
        return error;
    base->info->provider_data[INFO_HOST] = domain->host;
    domain->base = base;
    domain->start_time = shm_process_read_start_time(0);
    ofp_list_init(&domain->processes);
    ofp_list_init(&domain->endpoints);
    ofp_list_init(&domain->arenas);
    read_params(domain);
    if (getrandom(&domain->token, sizeof(domain->token), 0) != sizeof(domain->token))
        return -EIO;
    domain->self =
        (struct shm_process){.uses = 1, .token = domain->token, .pid = getpid(), .watch = {.fd = -1}, .domain = domain};
    ofp_list_init(&domain->self.arenas);
    domain->self.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (domain->self.event_fd < 0)
        return -errno;
    domain->wake = (struct ofp_watch){.fd = domain->self.event_fd, .events = EPOLLIN, .ready = read_event_fd};
    error = shm_core->watch_add(base, &domain->wake);
    if (error)
        close(domain->self.event_fd);
    return error;
}

static void close_domain(struct ofp_domain *base)
{
    struct shm_domain *domain = shm_domain_of(base);

    shm_table_close(domain);
    shm_arenas_close(domain);
    shm_core->watch_remove(base, &domain->wake);
    close(domain->self.event_fd);
}

/* ------------------------------------------------------------------------------------------------------- discovery */

/* `ordered`: RMA takes effect behind the messages sent before, so it goes through the ring with them. */
static void fill_info(struct ofp_info *info, bool ordered)
{
    *info = (struct ofp_info){
        .provider = SHM_NAME,
        .fabric = "shm",
        .protocol = "ofp-shm",
        .protocol_version = SHM_VERSION,
        .ep_types = OFP_EP_RDM,
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | OFP_CAP_ATOMIC | OFP_CAP_RMA_EVENT |
                OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE | OFP_CAP_LOCAL_COMM,
        .msg_order = OFP_ORDER_SAS | OFP_ORDER_SAW | OFP_ORDER_SAR | BYTE_ORDER_OF_RMA |
                     (ordered ? OFP_ORDER_WAS | OFP_ORDER_RAS : 0),
        .rma_order = BYTE_ORDER_OF_RMA,
        .atomic_order = BYTE_ORDER_OF_RMA,
        .max_msg_size = INT64_MAX,
        .max_rma_size = INT64_MAX,
        .max_atomic_size = MAX_ATOMIC_SIZE,
        .inject_size = INJECT_SIZE,
        .tx_size = shm_core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .remote_segment_limit = OFP_SEGMENT_LIMIT,
        .mr_key_size = sizeof(uint64_t),
        .cq_data_size = sizeof(uint64_t),
        .address_format = OFP_ADDRESS_SHM,
        .wait_fd = 1,
        .rank = ordered,
        .peer_proof = OFP_PROOF_USER,
        .encryption = OFP_ENCRYPTION_HOST,
    };
    snprintf(info->domain, sizeof(info->domain), "%s", ordered ? "shm-ordered" : "shm");
}

static int query_infos(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    int fd, count = max < 2 ? max : 2;
    uint64_t host;

    if (shm_core->host_id(&host, text, text_size) != 0)
        return 0;
    fd = shm_memfd_create("ofipy-probe", 4096, text, text_size);
    if (fd < 0)
        return 0;
    close(fd);
    for (int i = 0; i < count; i++)
        fill_info(&infos[i], i == 1);
    return count;
}

/* --------------------------------------------------------------------------------------------------------- addresses */

/* All infos have the same kind of address. */
static int resolve_address(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length, char *text, size_t text_size)
{
    (void)info;
    return shm_address_resolve(node, service, address, length, text, text_size);
}

/* A node is accepted if it is this host: shm connects no other. */
static int check_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    (void)info;
    return shm_address_check_node(node, text, text_size);
}

static int check_address(const struct ofp_info *info, const void *address, size_t length)
{
    (void)info;
    return shm_address_check(address, length);
}

/* An info without an open domain has no host yet. */
static int check_host(const struct ofp_info *info, const void *bytes, size_t length, char *text, size_t text_size)
{
    uint64_t host = info->provider_data[INFO_HOST];
    struct shm_address address;

    (void)length;
    memcpy(&address, bytes, sizeof(address));
    return host ? shm_address_check_host(host, &address, text, text_size) : 0;
}

static int format_address(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    (void)info;
    return shm_address_format(address, length, text, text_size);
}

/* ---------------------------------------------------------------------------------------------------------- tables */

static const struct ofp_endpoint_ops rdm_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct shm_endpoint),
    .peer_size = sizeof(struct shm_peer),
    .open = shm_endpoint_open,
    .close = shm_endpoint_close,
    .name = shm_endpoint_get_address,
    .connect = shm_link_connect,
    .peer_down = shm_link_disconnect,
    .internal_channel = true,
    .moves_layouts = true,
    .post = shm_operation_post,
    .receive_start = shm_receive_start,
    .flush = shm_endpoint_flush,
    .progress = shm_endpoint_progress,
    .arm = shm_endpoint_arm,
    .disarm = shm_endpoint_disarm,
    .protocol_choose = shm_protocol_choose,
};

static const struct ofp_endpoint_ops *endpoint_ops_of_info(const struct ofp_info *info)
{
    (void)info;
    return &rdm_ops;
}

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct shm_domain),
    .open = open_domain,
    .close = close_domain,
    .region_publish = shm_region_publish,
    .region_withdraw = shm_region_withdraw,
    .memory_allocate = shm_arena_allocate,
    .memory_free = shm_arena_free,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = PROVIDER_VERSION,
    .name = SHM_NAME,
    .description = "shared memory between processes of one host and user",
    .params = params,
    .getinfo = query_infos,
    .resolve = resolve_address,
    .address_check = check_address,
    .address_format = format_address,
    .at_node = check_node,
    .reaches = check_host,
    .domain_ops = &domain_ops,
    .endpoint_ops = endpoint_ops_of_info,
};

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    shm_core = core;
    return &provider;
}
