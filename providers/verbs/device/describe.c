/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/describe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "device/gid.h"
#include "device/optional.h"
#include "device/place.h"

/* A text that grows until its buffer is full. */
struct page {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 3, 4))) static void add_line(struct page *page, const char *name, const char *format, ...)
{
    va_list values;

    page->used += (size_t)snprintf(page->text + page->used, page->size - page->used, "%s\t", name);
    if (page->used < page->size) {
        va_start(values, format);
        page->used += (size_t)vsnprintf(page->text + page->used, page->size - page->used, format, values);
        va_end(values);
    }
    if (page->used < page->size)
        page->used += (size_t)snprintf(page->text + page->used, page->size - page->used, "\n");
    if (page->used >= page->size)
        page->used = page->size - 1;
}

static const char *state_of_port(const struct verbs_port *port)
{
    static const char *const names[] = {"nothing", "down", "initializing", "armed", "active", "active, deferred"};

    return (size_t)port->attr.state < sizeof(names) / sizeof(names[0]) ? names[port->attr.state] : "unknown";
}

static const char *link_layer_of_port(const struct verbs_port *port)
{
    if (port->context->device->transport_type == IBV_TRANSPORT_IWARP)
        return "Ethernet (iWARP)";
    return port->attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet (RoCE)" : "InfiniBand";
}

static unsigned decode_mtu(enum ibv_mtu code) { return code ? 128u << code : 0; }

/* The kernel writes "100 Gb/sec (4X EDR)". */
static void add_rate(struct page *page, const struct verbs_port *port)
{
    char name[32], text[64];

    snprintf(name, sizeof(name), "ports/%u/rate", port->number);
    if (verbs_device_read_line(verbs_device_name_of(port), name, text, sizeof(text)))
        add_line(page, "rate and width", "%s", text);
}

static void add_gids(struct page *page, const struct verbs_port *port)
{
    char name[32], type[32], shown[INET6_ADDRSTRLEN];
    union ibv_gid gid;

    for (int i = 0; i < port->attr.gid_tbl_len; i++)
        if (verbs_gid_query(port, i, &gid, type, sizeof(type))) {
            snprintf(name, sizeof(name), "GID %d", i);
            add_line(page, name, "%s %s", inet_ntop(AF_INET6, gid.raw, shown, sizeof(shown)), type);
        }
}

static void add_partition_keys(struct page *page, const struct verbs_port *port)
{
    char name[32];
    uint16_t key;

    for (int i = 0; i < port->attr.pkey_tbl_len; i++)
        if (verbs_calls.query_pkey(port->context, port->number, i, &key) == 0 && key) {
            snprintf(name, sizeof(name), "P_Key %d", i);
            add_line(page, name, "0x%04x", ntohs(key));
        }
}

/* The PCI address is the last part of the link's target. A software device has no such link. */
static void add_bus(struct page *page, const struct verbs_port *port)
{
    char path[128], target[256];
    ssize_t length;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", verbs_device_name_of(port));
    length = readlink(path, target, sizeof(target) - 1);
    target[length > 0 ? length : 0] = 0;
    add_line(page, "PCI address", "%s", length > 0 ? strrchr(target, '/') + 1 : "none");
    if (port->numa_node >= 0)
        add_line(page, "NUMA node", "%d", port->numa_node);
    else
        add_line(page, "NUMA node", "unknown");
}

static void add_limits(struct page *page, const struct verbs_port *port)
{
    const struct verbs_limits *limits = &port->limits;

    add_line(page, "sent inline", "%u bytes", limits->inline_size);
    add_line(page, "largest message", "%" PRIu64 " bytes", limits->message_size);
    add_line(page, "work requests", "%u in a queue, %u segments each", limits->depth, limits->segments);
    add_line(page, "reads at once", "%u out, %u in", limits->initiator_depth, limits->responder_resources);
}

static void add_optional_features(struct page *page, const struct verbs_port *port)
{
    char text[64];

    verbs_on_demand_describe(port, text, sizeof(text));
    add_line(page, "atomics", "%s", verbs_atomicity_describe(port));
    add_line(page, "on-demand paging", "%s", text);
    add_line(page, "dma-buf", "%s", verbs_dmabuf_probe(port));
}

int verbs_info_describe(const struct ofp_info *info, char *text, size_t text_size)
{
    struct page page = {text, text_size, 0};
    const struct verbs_port *port;
    union tcp_address address;

    text[0] = 0;
    verbs_info_get_address(info, &address);
    if (!verbs_library_load(text, text_size))
        return -ENOENT;
    port = verbs_port_find(&address, text, text_size);
    if (!port)
        return -ENODEV;
    add_line(&page, "device", "%s", verbs_device_name_of(port));
    add_line(&page, "firmware", "%s", port->device.fw_ver[0] ? port->device.fw_ver : "none");
    add_bus(&page, port);
    add_line(&page, "port", "%u, %s", port->number, state_of_port(port));
    add_line(&page, "link layer", "%s", link_layer_of_port(port));
    add_rate(&page, port);
    add_line(&page, "MTU", "%u bytes, at most %u", decode_mtu(port->attr.active_mtu), decode_mtu(port->attr.max_mtu));
    add_limits(&page, port);
    add_optional_features(&page, port);
    add_gids(&page, port);
    add_partition_keys(&page, port);
    return 0;
}
