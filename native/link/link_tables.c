/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the provider link, and its functions for addresses. */
#include "link/link_tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/link_device.h"
#include "operation/atomic_query.h"
#include "link/link_endpoint.h"
#include "link/link_lane.h"
#include "link/link_objects.h"
#include "link/link_peer.h"
#include "link/link_progress.h"
#include "link/link_region.h"
#include "link/link_services.h"

#define PROVIDER_VERSION 0x00010000u

/* ------------------------------------------------------------------------------------------------------------- tables */

/* Without the sizes of the parts, which each set adds. */
static const struct ofp_endpoint_ops common_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct link_endpoint),
    .peer_size = sizeof(struct link_peer),
    .open = link_endpoint_open,
    .drain = link_endpoint_drain,
    .unsent = link_peer_count_unsent,
    .close = link_endpoint_close,
    .name = link_endpoint_get_address,
    .connect = link_peer_connect,
    .peer_down = link_peer_disconnect,
    .peer_open = link_peer_open,
    .peer_close = link_peer_close,
    .eager_peers = true,
    .internal_channel = true,
    .post = link_transfer_post,
    .flush = link_endpoint_flush,
    .receive_start = link_receive_start,
    .progress = link_endpoint_progress,
    .arm = link_endpoint_arm,
    .disarm = link_endpoint_disarm,
    .peers_persist = true,
    .peer_readdressed = link_peer_readdressed,
    .peer_identity = link_peer_get_identity,
    .needs_flush = link_peer_needs_flush,
    .moves_layouts = true,
    .marks_packets = true,
    .peer_lane = link_lane_choose_peer,
};

static const struct ofp_endpoint_ops *find_endpoint_ops(const struct ofp_info *info)
{
    const struct link_set *set = link_set_of(info);

    return set ? &set->ops : NULL;
}

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct link_domain),
    .open = link_domain_open,
    .close = link_domain_close,
    .region_open = link_region_open,
    .region_close = link_region_close,
    .region_publish = link_region_publish,
    .region_withdraw = link_region_withdraw,
    .memory_allocate = link_memory_allocate,
    .memory_free = link_memory_free,
    .region_disowned = link_region_disowned,
};

/* ---------------------------------------------------------------------------------------------------------- discovery */

static int query_infos(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    return link_sets_find(LINK_NAME, &common_ops, infos, max, text, text_size);
}

static int query_infos_as(const char *name, struct ofp_info *infos, int max, char *text, size_t text_size)
{
    return link_sets_find(name, &common_ops, infos, max, text, text_size);
}

/* The largest vector that all devices support. */
static int atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count)
{
    const struct link_set *set = link_set_of(info);
    int result = set ? 0 : -EINVAL;

    *count = UINT64_MAX;
    for (uint32_t i = 0; !result && i < set->count; i++) {
        uint64_t one;

        result = ofpi_provider_atomic_query(set->parts[i].provider, &set->parts[i].info, operation_code, atomic_op,
                                            datatype, &one);
        if (!result && one < *count)
            *count = one;
    }
    return result;
}

/* ---------------------------------------------------------------------------------------------------------- addresses */

static int resolve_address(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length, char *text, size_t text_size)
{
    static const uint8_t unknown[LINK_HOST_SIZE];
    const struct link_set *set = link_set_of(info);
    struct link_writer writer;
    int result = set ? link_writer_init(&writer, address, *length, unknown, unknown, false) : -EINVAL;
    int found = -EHOSTUNREACH;

    for (uint32_t i = 0; !result && i < set->count; i++) {
        const struct link_part *part = &set->parts[i];
        char one[OFP_ADDRESS_MAX], why[OFP_TEXT_MAX] = "";
        size_t size = sizeof(one);
        int result_of_part = part->provider->resolve(&part->info, node, service, one, &size, why, sizeof(why));

        if (!result_of_part && link_address_add(&writer, part->info.provider, one, size) == 0) {
            found = 0;
        } else if (found) {
            snprintf(text, text_size, "%s", why);
            found = result_of_part;
        }
    }
    if (!result)
        *length = writer.length;
    return result ? result : found;
}

static int address_check(const struct ofp_info *info, const void *address, size_t length)
{
    struct link_address read;

    (void)info;
    return link_address_read(&read, address, length);
}

/* The part of the set for an entry; NULL if there is none. */
static const struct link_part *find_part(const struct link_set *set, const struct link_entry *entry)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (link_entry_is_of(entry, set->parts[i].info.provider, strlen(set->parts[i].info.provider)))
            return &set->parts[i];
    return NULL;
}

/* Format the entry of a network if there is one: it identifies the endpoint on other hosts and on this one. */
static int address_format(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    const struct link_set *set = link_set_of(info);
    struct link_entry entry, chosen;
    struct link_address read;
    const struct link_part *part, *writer = NULL;
    const uint8_t *cursor = NULL;
    int result = set ? link_address_read(&read, address, length) : -EINVAL;

    if (result)
        return result;
    while (link_address_read_next(&read, &cursor, &entry)) {
        part = find_part(set, &entry);
        if (!part || part->provider->address_check(&part->info, entry.address, entry.length) != 0 ||
            (writer && (part->within_host || !writer->within_host)))
            continue;
        writer = part;
        chosen = entry;
    }
    return writer ? writer->provider->address_format(&writer->info, chosen.address, chosen.length, text, text_size)
                  : -EINVAL;
}

static int check_reach(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    const struct link_set *set = link_set_of(info);
    struct link_entry entry;
    struct link_address read;
    const uint8_t *cursor = NULL;
    char names[OFP_TEXT_MAX / 2] = "", why[OFP_TEXT_MAX / 2] = "";
    int result = set ? link_address_read(&read, address, length) : -EINVAL;

    if (result)
        return result;
    while (link_address_read_next(&read, &cursor, &entry)) {
        const struct link_part *part = find_part(set, &entry);
        size_t used = strlen(names);

        snprintf(names + used, sizeof(names) - used, "%s%.*s", used ? ", " : "", (int)entry.name_length, entry.name);
        if (!part || part->provider->address_check(&part->info, entry.address, entry.length) != 0)
            continue;
        if (!part->provider->reaches ||
            part->provider->reaches(&part->info, entry.address, entry.length, why, sizeof(why)) == 0)
            return 0;
    }
    if (why[0])
        snprintf(text, text_size, "%s", why);
    else
        snprintf(text, text_size, "it can be reached over %s, and endpoints of the domain %s cannot do that", names,
                 info->domain);
    return -EHOSTUNREACH;
}

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = PROVIDER_VERSION,
    .name = LINK_NAME,
    .description = "shared memory to processes of this host and a network to others, under one endpoint",
    .getinfo = query_infos,
    .getinfo_as = query_infos_as,
    .resolve = resolve_address,
    .address_check = address_check,
    .address_format = address_format,
    .at_node = link_set_choose_at_node,
    .reaches = check_reach,
    .atomic_query = atomic_query,
    .domain_ops = &domain_ops,
    .endpoint_ops = find_endpoint_ops,
    .address_key = link_address_find_key,
    .address_relation = link_address_compare,
};

const struct ofp_provider *link_provider_get(const struct ofp_core *core)
{
    (void)core;
    return &provider;
}
