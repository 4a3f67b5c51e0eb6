/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram/handle.h"

#include <errno.h>
#include <string.h>

#include "device/gid.h"
#include "device/place.h"

#define HOP_LIMIT 64

/* The kinds of GIDs. Source and destination of a packet must have the same kind. */
enum kind { KIND_IPV4, KIND_LINK_LOCAL, KIND_GLOBAL };

static enum kind kind_of_gid(const union ibv_gid *gid)
{
    struct in6_addr ip;

    memcpy(&ip, gid->raw, sizeof(ip));
    if (IN6_IS_ADDR_V4MAPPED(&ip))
        return KIND_IPV4;
    return IN6_IS_ADDR_LINKLOCAL(&ip) ? KIND_LINK_LOCAL : KIND_GLOBAL;
}

static bool is_routable(const char *type) { return strcmp(type, "RoCE v2") == 0; }

/*
 * Find an index in the port's GID table: of the GID `wanted`, or of any GID of `kind` if that is NULL. RoCE v2 is
 * preferred. Returns -1 if there is none.
 */
static int find_gid(const struct verbs_port *port, const union ibv_gid *wanted, enum kind kind)
{
    union ibv_gid gid;
    char type[32];
    int found = -1;

    for (int i = 0; i < port->attr.gid_tbl_len; i++)
        if (verbs_gid_query(port, i, &gid, type, sizeof(type)) &&
            (wanted ? memcmp(&gid, wanted, sizeof(gid)) == 0 : kind_of_gid(&gid) == kind) &&
            (found < 0 || is_routable(type)))
            found = i;
    return found;
}

static bool is_infiniband(const struct verbs_port *port) { return port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND; }

int verbs_datagram_address_fill(struct verbs_datagram *endpoint)
{
    const struct verbs_domain *domain = endpoint->domain;
    const struct verbs_port *port = domain->port;
    struct verbs_datagram_address *self = &endpoint->address;
    int64_t asked = verbs_core->param_int("VERBS_GID_INDEX");
    union tcp_address ip;
    uint16_t pkey = 0;

    verbs_info_get_address(endpoint->base->info, &ip);
    verbs_gid_encode(&ip, &self->gid);
    if (is_infiniband(port))
        endpoint->gid_index = asked > 0 ? (int)asked : 0;
    else
        endpoint->gid_index = asked >= 0 ? (int)asked : find_gid(port, &self->gid, KIND_GLOBAL);
    if (endpoint->gid_index < 0 ||
        verbs_calls.query_gid(port->context, port->number, endpoint->gid_index, &self->gid) != 0)
        return -ENODEV;
    verbs_calls.query_pkey(port->context, port->number, domain->settings.pkey > 0 ? domain->settings.pkey : 0, &pkey);
    self->pkey = pkey;
    self->lid = port->attr.lid;
    self->sl = domain->settings.service_level >= 0 ? (uint8_t)domain->settings.service_level : port->attr.sm_sl;
    return 0;
}

/* The endpoint's own GID, or on Ethernet one of the same kind as the destination's. */
static int choose_source_gid(const struct verbs_datagram *endpoint, const union ibv_gid *to)
{
    const struct verbs_port *port = endpoint->domain->port;
    enum kind kind = kind_of_gid(to);
    int index = is_infiniband(port) || kind_of_gid(&endpoint->address.gid) == kind ? -1 : find_gid(port, NULL, kind);

    return index < 0 ? endpoint->gid_index : index;
}

/* The endpoint's, else the parameter's. */
static uint8_t get_traffic_class(const struct verbs_datagram *endpoint)
{
    int setting = endpoint->domain->settings.traffic_class;

    if (endpoint->base->traffic_class)
        return (uint8_t)(endpoint->base->traffic_class & ~OFP_TRAFFIC_CLASS);
    return setting >= 0 ? (uint8_t)setting : 0;
}

struct ibv_ah_attr verbs_datagram_handle_build(const struct verbs_datagram *endpoint,
                                               const struct verbs_datagram_address *to)
{
    const struct verbs_domain *domain = endpoint->domain;
    struct ibv_ah_attr attr = {.dlid = to->lid, .sl = to->sl, .port_num = domain->port->number};

    if (domain->settings.service_level >= 0)
        attr.sl = (uint8_t)domain->settings.service_level;
    if (to->gid.global.interface_id) {
        attr.is_global = 1;
        attr.grh.dgid = to->gid;
        attr.grh.sgid_index = (uint8_t)choose_source_gid(endpoint, &to->gid);
        attr.grh.hop_limit = HOP_LIMIT;
        attr.grh.traffic_class = get_traffic_class(endpoint);
    }
    return attr;
}
