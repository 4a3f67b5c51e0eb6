/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/place.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "device/gid.h"

/* ------------------------------------------------------------------------------------------------------------- infos */

/* The info of a datagram endpoint contains the GID. */
void verbs_info_get_address(const struct ofp_info *info, union tcp_address *address)
{
    union ibv_gid gid;

    if (!(info->ep_types & OFP_EP_DGRAM)) {
        tcp_info_get_address(info, address);
        return;
    }
    memcpy(gid.raw, info->provider_data, sizeof(gid.raw));
    verbs_gid_decode(&gid, address);
}

void verbs_info_set_address(struct ofp_info *info, const union tcp_address *address)
{
    union ibv_gid gid;

    tcp_info_set_address(info, address);
    if (!(info->ep_types & OFP_EP_DGRAM))
        return;
    verbs_gid_encode(address, &gid);
    memcpy(info->provider_data, gid.raw, sizeof(gid.raw));
    info->address_format = OFP_ADDRESS_OPAQUE;
}

/* ---------------------------------------------------------------------------------------------------------- choosing */

static bool is_wanted(const struct verbs_place *place)
{
    const char *device = verbs_core->param_string("VERBS_DEVICE");
    int64_t number = verbs_core->param_int("VERBS_PORT"), index = verbs_core->param_int("VERBS_GID_INDEX");
    union ibv_gid gid, own;
    char type[32];

    if (device && device[0] && strcmp(device, verbs_device_name_of(place->port)) != 0)
        return false;
    if (number && number != place->port->number)
        return false;
    if (index < 0 || place->port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
        return true;
    verbs_gid_encode(&place->interface.address, &own);
    return verbs_gid_query(place->port, (int)index, &gid, type, sizeof(type)) && memcmp(&gid, &own, sizeof(gid)) == 0;
}

static bool is_better(const struct verbs_place *a, const struct verbs_place *b)
{
    uint64_t speed_a = verbs_port_compute_speed(&a->port->attr), speed_b = verbs_port_compute_speed(&b->port->attr);

    if (speed_a != speed_b)
        return speed_a > speed_b;
    return verbs_port_compute_distance(a->port) < verbs_port_compute_distance(b->port);
}

static void sort_places(struct verbs_place *places, int count)
{
    for (int i = 1; i < count; i++) {
        struct verbs_place moved = places[i];
        int at = i;

        for (; at && is_better(&moved, &places[at - 1]); at--)
            places[at] = places[at - 1];
        places[at] = moved;
    }
}

static void describe_unwanted_place(const struct verbs_place *unwanted, char *text, size_t text_size)
{
    snprintf(text, text_size,
             "%s port %u is up, and none is that OFIPY_VERBS_DEVICE=%s, OFIPY_VERBS_PORT=%" PRId64
             " and OFIPY_VERBS_GID_INDEX=%" PRId64 " ask for",
             verbs_device_name_of(unwanted->port), unwanted->port->number, verbs_core->param_string("VERBS_DEVICE"),
             verbs_core->param_int("VERBS_PORT"), verbs_core->param_int("VERBS_GID_INDEX"));
}

bool verbs_interface_is_chosen(void)
{
    const char *chosen = verbs_core->param_string("INTERFACE");

    return chosen && chosen[0];
}

/* NULL: any interface. */
static const char *get_chosen_interface(void)
{
    const char *chosen = verbs_core->param_string("INTERFACE");

    return verbs_interface_is_chosen() && strcmp(chosen, "any") != 0 ? chosen : NULL;
}

int verbs_places_find(struct verbs_place places[TCP_INTERFACES_MAX], char *text, size_t text_size)
{
    struct tcp_interface interfaces[TCP_INTERFACES_MAX];
    int found, count = 0;

    if (verbs_devices_are_of_parent()) {
        snprintf(
            text, text_size,
            "this process was forked from one that uses its RDMA devices, which a child cannot share: start it anew "
            "(multiprocessing: spawn or forkserver)");
        return 0;
    }
    found = tcp_interfaces_query(interfaces, get_chosen_interface());
    for (int i = 0; i < found; i++) {
        struct verbs_place *place = &places[count];

        /* The connection manager would choose any device for a loopback address. */
        if (tcp_address_is_loopback(&interfaces[i].address))
            continue;
        place->interface = interfaces[i];
        place->port = verbs_port_find(&interfaces[i].address, text, text_size);
        if (!place->port || place->port->attr.state != IBV_PORT_ACTIVE)
            continue;
        if (is_wanted(place))
            count++;
        else if (!count)
            describe_unwanted_place(place, text, text_size);
    }
    sort_places(places, count);
    return count;
}

void verbs_place_format_network(const struct verbs_place *place, char *text, size_t text_size)
{
    union tcp_address network = place->interface.address;
    char host[INET6_ADDRSTRLEN], type[32];
    union ibv_gid gid;
    size_t length;
    uint8_t *ip = (uint8_t *)(uintptr_t)tcp_address_get_ip(&network, &length);

    if (place->port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND &&
        verbs_gid_query(place->port, 0, &gid, type, sizeof(type))) {
        snprintf(text, text_size, "IB-0x%016" PRIx64, (uint64_t)be64toh(gid.global.subnet_prefix));
        return;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned bits = place->interface.prefix > i * 8 ? place->interface.prefix - (unsigned)i * 8 : 0;

        if (bits < 8)
            ip[i] &= (uint8_t)(0xff00u >> bits);
    }
    inet_ntop(network.any.sa_family, ip, host, sizeof(host));
    snprintf(text, text_size, "%s/%u", host, place->interface.prefix);
}
