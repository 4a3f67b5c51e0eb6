/* SPDX-License-Identifier: BSD-3-Clause */
/* Discovery: convert libfabric's infos to ofipy's, and find libfabric's info for one of ofipy's. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"

/* Modes that the bridge supports. Never message prefixes, raw keys or bindings of regions to counters. */
#define MODES (LF_MODE_CONTEXT | LF_MODE_CONTEXT2 | LF_MODE_RX_CQ_DATA)
#define MR_MODES (LF_MR_LOCAL | LF_MR_VIRT_ADDR | LF_MR_ALLOCATED | LF_MR_PROV_KEY | LF_MR_ENDPOINT)

/* Bytes of private data of a request: the least that a provider of libfabric accepts, verbs. */
#define LEAST_PRIVATE_DATA 55

/* Files that libfabric opens at once during discovery, at most. */
#define FILES_OF_A_SEARCH 4

static const struct {
    uint64_t theirs, ours;
} capabilities[] = {
    {LF_MSG, OFP_CAP_MSG},
    {LF_TAGGED, OFP_CAP_TAGGED},
    {LF_SOURCE, OFP_CAP_SOURCE},
    {LF_DIRECTED_RECV, OFP_CAP_DIRECTED_RECV},
    {LF_LOCAL_COMM, OFP_CAP_LOCAL_COMM},
    {LF_REMOTE_COMM, OFP_CAP_REMOTE_COMM},
};

/*
 * ofi_rxm omits atomics and directed receives unless they are requested, and promises less order with atomics. The
 * bridge requests them: programs should find every operation, and the info states the order.
 */
#define ASKED_OF_LAYERED                                                                                               \
    (LF_MSG | LF_TAGGED | LF_RMA | LF_ATOMIC | LF_SEND | LF_RECV | LF_READ | LF_WRITE | LF_REMOTE_READ |               \
     LF_REMOTE_WRITE | LF_SOURCE | LF_DIRECTED_RECV)

bool bridge_is_layered(const char *provider)
{
    const char *layer = strchr(provider, ';');

    return layer && strcmp(layer, ";ofi_rxm") == 0;
}

int bridge_error_convert(int error)
{
    int positive = error < 0 ? -error : error;

    /* LF_EDOMAIN has the number of another errno; libfabric means a bad argument to an operation. */
    return positive == LF_EDOMAIN ? EINVAL : positive;
}

/*
 * Whether queues have a descriptor is known only when one is open, so providers known to have none are named here.
 * domain.c corrects the info of other providers.
 */
static bool has_queue_descriptors(const char *provider)
{
    static const char *const without[] = {"shm", "sm2", "sockets", "udp;ofi_rxd"};

    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        if (strcmp(provider, without[i]) == 0)
            return false;
    return true;
}

static uint32_t convert_address_format(uint32_t format)
{
    if (format == LF_SOCKADDR_IN)
        return OFP_ADDRESS_IPV4;
    if (format == LF_SOCKADDR_IN6)
        return OFP_ADDRESS_IPV6;
    return OFP_ADDRESS_OPAQUE;
}

/* "FI_PROTO_XNET" as "xnet". */
static void format_protocol(const struct bridge_library *library, uint32_t protocol, char *name, size_t size)
{
    static const char prefix[] = "FI_PROTO_";
    char text[64] = "";
    size_t length = 0;

    if (library->tostr_r)
        library->tostr_r(text, sizeof(text), &protocol, LF_TOSTR_PROTOCOL);
    if (strncmp(text, prefix, sizeof(prefix) - 1) != 0) {
        snprintf(name, size, "%u", protocol);
        return;
    }
    for (const char *from = text + sizeof(prefix) - 1; *from && length + 1 < size; from++)
        name[length++] = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
    name[length] = 0;
}

/* False when the name is too long to be stored. */
static bool copy_name(char *to, size_t size, const char *prefix, const char *name)
{
    return name && (size_t)snprintf(to, size, "%s%s", prefix, name) < size;
}

static uint64_t choose_larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t choose_smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static const struct {
    enum lf_ep_type theirs;
    uint32_t ours;
} endpoint_types[] = {{LF_EP_RDM, OFP_EP_RDM}, {LF_EP_MSG, OFP_EP_MSG}, {LF_EP_DGRAM, OFP_EP_DGRAM}};

#define ENDPOINT_TYPES (sizeof(endpoint_types) / sizeof(endpoint_types[0]))

static uint32_t convert_type_to_ours(enum lf_ep_type type)
{
    for (size_t i = 0; i < ENDPOINT_TYPES; i++)
        if (endpoint_types[i].theirs == type)
            return endpoint_types[i].ours;
    return 0;
}

static enum lf_ep_type convert_type_to_theirs(uint32_t type)
{
    for (size_t i = 0; i < ENDPOINT_TYPES; i++)
        if (endpoint_types[i].ours == type)
            return endpoint_types[i].theirs;
    return LF_EP_UNSPEC;
}

static uint64_t convert_remote_capabilities(const struct lf_info *info)
{
    const uint64_t both_ways = LF_READ | LF_WRITE | LF_REMOTE_READ | LF_REMOTE_WRITE;

    if ((info->caps & both_ways) != both_ways || !info->tx_attr->rma_iov_limit)
        return 0;
    return (info->caps & LF_RMA ? OFP_CAP_RMA : 0) | (info->caps & LF_ATOMIC ? OFP_CAP_ATOMIC : 0);
}

/*
 * Convert the order of bytes, which libfabric limits to a size and ofipy promises for any. `rar`: the first of the four
 * bits of the class.
 */
static uint64_t convert_byte_order(const struct lf_info *info, uint64_t rar)
{
    const struct lf_ep_attr *ep = info->ep_attr;
    const struct {
        uint64_t theirs, ours;
        size_t size;
    } orders[] = {
        {rar, OFP_ORDER_RAR, ep->max_msg_size},
        {rar << 1, OFP_ORDER_RAW, ep->max_order_raw_size},
        {rar << 2, OFP_ORDER_WAR, ep->max_order_war_size},
        {rar << 3, OFP_ORDER_WAW, ep->max_order_waw_size},
    };
    uint64_t result = 0;

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (info->tx_attr->msg_order & info->rx_attr->msg_order & orders[i].theirs &&
            orders[i].size >= ep->max_msg_size)
            result |= orders[i].ours;
    return result;
}

uint64_t bridge_segment_limit_compute(const struct lf_info *info)
{
    return choose_smaller(info->tx_attr->iov_limit, info->rx_attr->iov_limit);
}

/* The core matches datagrams, and has no bound on receives. */
static void fill_datagrams(struct ofp_info *info)
{
    info->offloads_matching = 0;
    info->rx_size = UINT64_MAX;
    info->inject_size = choose_smaller(info->inject_size, info->max_msg_size);
    if (info->caps & OFP_CAP_SOURCE)
        info->caps |= OFP_CAP_DIRECTED_RECV;
}

/*
 * Convert an info. False: ofipy cannot represent it. Infos with shared receive contexts are not used: another info has
 * endpoints without them.
 */
static bool fill_info(const struct bridge_library *library, const struct lf_info *from, struct ofp_info *info)
{
    *info = (struct ofp_info){
        .protocol_version = from->ep_attr->protocol_version,
        .ep_types = convert_type_to_ours(from->ep_attr->type),
        .msg_order = from->tx_attr->msg_order & from->rx_attr->msg_order & LF_ORDER_MESSAGES,
        .max_msg_size = choose_smaller(from->ep_attr->max_msg_size, INT64_MAX),
        .inject_size = choose_larger(from->tx_attr->inject_size, BRIDGE_INJECT_SIZE),
        .tx_size = from->tx_attr->size,
        .rx_size = from->rx_attr->size,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .remote_segment_limit = choose_smaller(from->tx_attr->rma_iov_limit, OFP_SEGMENT_LIMIT),
        .cq_data_size = from->domain_attr->cq_data_size,
        .mr_key_size = from->domain_attr->mr_key_size,
        .address_format = convert_address_format(from->addr_format),
        .wait_fd = has_queue_descriptors(from->fabric_attr->prov_name),
        .offloads_matching = 1,
        .provider_data = {library->version},
    };
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        if (from->caps & capabilities[i].theirs)
            info->caps |= capabilities[i].ours;
    info->caps |= convert_remote_capabilities(from);
    if (info->caps & OFP_CAP_RMA) {
        info->max_rma_size = info->max_msg_size;
        info->rma_order = convert_byte_order(from, LF_ORDER_RMA_RAR);
    }
    /* The exact bound is known when a domain is open. */
    if (info->caps & OFP_CAP_ATOMIC) {
        info->max_atomic_size = info->max_msg_size;
        info->atomic_order = convert_byte_order(from, LF_ORDER_ATOMIC_RAR);
    }
    /* The exact size is known when a domain is open. */
    if (info->ep_types == OFP_EP_MSG)
        info->max_private_data = LEAST_PRIVATE_DATA;
    if (info->ep_types == OFP_EP_DGRAM)
        fill_datagrams(info);
    /* ofi_rxm's receiver reads a long message after later messages have arrived. */
    if (bridge_is_layered(from->fabric_attr->prov_name))
        info->msg_order &= OFP_ORDER_SAS;
    format_protocol(library, from->ep_attr->protocol, info->protocol, sizeof(info->protocol));
    return from->ep_attr->rx_ctx_cnt != LF_SHARED_CONTEXT &&
           copy_name(info->provider, sizeof(info->provider), BRIDGE_NAME ":", from->fabric_attr->prov_name) &&
           copy_name(info->fabric, sizeof(info->fabric), "", from->fabric_attr->name) &&
           copy_name(info->domain, sizeof(info->domain), "", from->domain_attr->name);
}

/* Compare the members by which an info is found again. */
static bool is_same_info(const struct ofp_info *a, const struct ofp_info *b)
{
    return strcmp(a->provider, b->provider) == 0 && strcmp(a->fabric, b->fabric) == 0 &&
           strcmp(a->domain, b->domain) == 0 && strcmp(a->protocol, b->protocol) == 0 && a->ep_types == b->ep_types &&
           a->address_format == b->address_format;
}

static bool is_known_info(const struct ofp_info *infos, int count, const struct ofp_info *info)
{
    for (int i = 0; i < count; i++)
        if (is_same_info(&infos[i], info))
            return true;
    return false;
}

static struct lf_info *create_base_hints(const struct bridge_library *library, enum lf_ep_type type)
{
    struct lf_info *hints = library->dupinfo(NULL);

    if (!hints)
        return NULL;
    hints->mode = MODES;
    hints->ep_attr->type = type;
    hints->domain_attr->mr_mode = MR_MODES;
    /* Regions open and close without the core's lock, in any thread, while other threads use the domain. */
    hints->domain_attr->threading = LF_THREAD_SAFE;
    hints->domain_attr->control_progress = LF_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = LF_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = LF_RM_ENABLED;
    return hints;
}

/*
 * With virtual addresses shm copies directly into another process and checks neither key nor bounds nor rights; after a
 * failure it returns EAGAIN forever.
 */
static int choose_mr_modes(const char *provider)
{
    return strcmp(provider, "shm") == 0 ? MR_MODES & ~LF_MR_VIRT_ADDR : MR_MODES;
}

/* Create hints that match `info`; NULL: out of memory. libfabric frees them: both use the C library. */
static struct lf_info *create_hints(const struct bridge_library *library, const struct ofp_info *info)
{
    struct lf_info *hints = create_base_hints(library, convert_type_to_theirs(info->ep_types));

    if (!hints)
        return NULL;
    hints->fabric_attr->prov_name = strdup(info->provider + strlen(BRIDGE_NAME ":"));
    hints->domain_attr->mr_mode = choose_mr_modes(info->provider + strlen(BRIDGE_NAME ":"));
    if (bridge_is_layered(info->provider) && info->caps & OFP_CAP_ATOMIC)
        hints->caps = ASKED_OF_LAYERED;
    hints->fabric_attr->name = strdup(info->fabric);
    hints->domain_attr->name = strdup(info->domain);
    if (hints->fabric_attr->prov_name && hints->fabric_attr->name && hints->domain_attr->name)
        return hints;
    library->freeinfo(hints);
    return NULL;
}

/* Remove the first match from a list and free the others. NULL: none. */
static struct lf_info *choose_info(const struct bridge_library *library, struct lf_info *list,
                                   const struct ofp_info *wanted)
{
    struct lf_info **link = &list, *found;
    struct ofp_info candidate;

    while (*link && !(fill_info(library, *link, &candidate) && is_same_info(&candidate, wanted)))
        link = &(*link)->next;
    found = *link;
    if (found) {
        *link = found->next;
        found->next = NULL;
    }
    if (list)
        library->freeinfo(list);
    return found;
}

/* Whether this process can open fewer files than discovery needs. */
static bool is_short_of_files(void)
{
    int opened[FILES_OF_A_SEARCH], count = 0;
    bool is_short;

    while (count < FILES_OF_A_SEARCH && (opened[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    is_short = count < FILES_OF_A_SEARCH && errno == EMFILE;
    while (count)
        close(opened[--count]);
    return is_short;
}

int bridge_open_error_convert(int error)
{
    bool is_vague = error == -ENODATA || error == -EIO || error == -ENOMEM;

    return is_vague && is_short_of_files() ? -EMFILE : error;
}

int bridge_info_find(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                     const char *service, uint64_t flags, struct lf_info **found)
{
    struct lf_info *hints = create_hints(library, info), *list = NULL;
    int error;

    if (!hints)
        return -ENOMEM;
    error = library->getinfo(library->api, node, service, flags, hints, &list);
    library->freeinfo(hints);
    if (error)
        return bridge_open_error_convert(-bridge_error_convert(error));
    *found = choose_info(library, list, info);
    return *found ? 0 : bridge_open_error_convert(-ENODATA);
}

/* The system chooses the device for a peer: hints name only the provider and the address format. */
int bridge_info_find_remote(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                            const char *service, struct lf_info **found)
{
    struct lf_info *hints = create_hints(library, info);
    int error;

    if (!hints)
        return -ENOMEM;
    free(hints->fabric_attr->name);
    free(hints->domain_attr->name);
    hints->fabric_attr->name = hints->domain_attr->name = NULL;
    error = library->getinfo(library->api, node, service, 0, hints, found);
    library->freeinfo(hints);
    return -bridge_error_convert(error);
}

uint64_t bridge_completion_levels_query(const struct bridge_library *library, const struct ofp_info *info)
{
    static const uint64_t levels[] = {LF_TRANSMIT_COMPLETE, LF_DELIVERY_COMPLETE, LF_MATCH_COMPLETE};
    uint64_t offered = 0;

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct lf_info *hints = create_hints(library, info), *list = NULL;

        if (!hints)
            break;
        hints->tx_attr->op_flags = levels[i];
        if (library->getinfo(library->api, NULL, NULL, 0, hints, &list) == 0) {
            offered |= levels[i];
            library->freeinfo(list);
        }
        library->freeinfo(hints);
    }
    return offered;
}

static int query_library(const struct bridge_library *library, enum lf_ep_type type, uint64_t capabilities_wanted,
                         struct lf_info **list)
{
    struct lf_info *hints = create_base_hints(library, type);
    int error;

    if (!hints)
        return -ENOMEM;
    hints->caps = capabilities_wanted;
    error = library->getinfo(library->api, NULL, NULL, 0, hints, list);
    library->freeinfo(hints);
    if (error)
        *list = NULL;
    return error;
}

/*
 * Whether connected endpoints of the provider are known to work. Other providers deprecate theirs: sockets of 1.17
 * crashes when the info of a request is freed.
 */
static bool can_connect(const struct lf_info *each)
{
    const char *name = each->fabric_attr->prov_name;

    return strcmp(name, "tcp") == 0 || strcmp(name, "verbs") == 0;
}

/*
 * Whether datagrams of the provider are known to work: receive buffers are not registered and have no prefix. The bound
 * on messages is what a packet contains.
 */
static bool can_send_datagrams(const struct lf_info *each)
{
    return strcmp(each->fabric_attr->prov_name, "udp") == 0 && !(each->domain_attr->mr_mode & LF_MR_LOCAL) &&
           each->ep_attr->max_msg_size && each->ep_attr->max_msg_size <= UINT16_MAX && each->rx_attr->size;
}

/* Convert one info; for a layered provider use the same info in `asked`, if it is there. */
static bool convert_info(const struct bridge_library *library, const struct lf_info *each, const struct lf_info *asked,
                         struct ofp_info *info)
{
    struct ofp_info other;

    if (!fill_info(library, each, info) || !(info->caps & (OFP_CAP_MSG | OFP_CAP_TAGGED)))
        return false;
    if (info->ep_types == OFP_EP_MSG)
        return can_connect(each);
    if (info->ep_types == OFP_EP_DGRAM)
        return can_send_datagrams(each);
    if (!bridge_is_layered(info->provider))
        return true;
    for (; asked; asked = asked->next)
        if (fill_info(library, asked, &other) && is_same_info(&other, info)) {
            *info = other;
            return true;
        }
    return true;
}

static bool has_usable_keys(const struct lf_info *each)
{
    if (each->domain_attr->mr_key_size <= sizeof(uint64_t))
        return true;
    bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME, "%s is left out: its remote keys have %zu bits, more than 64",
                     each->fabric_attr->prov_name, 8 * each->domain_attr->mr_key_size);
    return false;
}

/* Append the infos of a list behind the first `count`; returns the new count. */
static int collect_infos(const struct bridge_library *library, const struct lf_info *list, const struct lf_info *asked,
                         struct ofp_info *infos, int count, int max)
{
    for (const struct lf_info *each = list; each && count < max; each = each->next) {
        if (!has_usable_keys(each) || !convert_info(library, each, asked, &infos[count]) ||
            is_known_info(infos, count, &infos[count]))
            continue;
        infos[count].rank = (uint32_t)count;
        count++;
    }
    return count;
}

int bridge_infos_query(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    const struct bridge_library *library = bridge_library_get(text, text_size);
    struct lf_info *lists[4] = {NULL, NULL, NULL, NULL};
    int errors[4], count = 0;

    if (!library)
        return 0;
    errors[0] = query_library(library, LF_EP_RDM, 0, &lists[0]);
    errors[1] = query_library(library, LF_EP_RDM, ASKED_OF_LAYERED, &lists[1]);
    errors[2] = query_library(library, LF_EP_MSG, 0, &lists[2]);
    errors[3] = query_library(library, LF_EP_DGRAM, 0, &lists[3]);
    count = collect_infos(library, lists[0], lists[1], infos, count, max);
    count = collect_infos(library, lists[2], NULL, infos, count, max);
    count = collect_infos(library, lists[3], NULL, infos, count, max);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (lists[i])
            library->freeinfo(lists[i]);
    if (!count && (errors[0] == -ENOMEM || errors[2] == -ENOMEM || errors[3] == -ENOMEM))
        return -ENOMEM;
    if (!count && errors[0] && errors[2] && errors[3])
        snprintf(text, text_size, "libfabric %u.%u offers nothing here: %s", library->version >> 16,
                 library->version & 0xffff, library->strerror(-errors[0]));
    else if (!count)
        snprintf(
            text, text_size,
            "libfabric has no provider here that can be taken (see fi_info -t FI_EP_RDM, -t FI_EP_MSG, -t FI_EP_DGRAM)");
    return count;
}
