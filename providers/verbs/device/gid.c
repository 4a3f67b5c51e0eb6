/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/gid.h"

#include <stdio.h>
#include <string.h>

#include "device/device.h"

bool verbs_gid_query(const struct verbs_port *port, int index, union ibv_gid *gid, char *type, size_t type_size)
{
    static const union ibv_gid none;
    char name[64];

    type[0] = 0;
    if (verbs_calls.query_gid(port->context, port->number, index, gid) != 0 || memcmp(gid, &none, sizeof(none)) == 0)
        return false;
    snprintf(name, sizeof(name), "ports/%u/gid_attrs/types/%d", port->number, index);
    if (!verbs_device_read_line(verbs_device_name_of(port), name, type, type_size))
        type[0] = 0;
    return true;
}

void verbs_gid_encode(const union tcp_address *address, union ibv_gid *gid)
{
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);

    memcpy(gid->raw, mapped, sizeof(mapped));
    memcpy(gid->raw + sizeof(gid->raw) - length, ip, length);
}

void verbs_gid_decode(const union ibv_gid *gid, union tcp_address *address)
{
    memset(address, 0, sizeof(*address));
    address->any.sa_family = AF_INET6;
    memcpy(&address->v6.sin6_addr, gid->raw, sizeof(gid->raw));
    tcp_address_clear_unused(address);
}
