/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a port's GIDs, which on Ethernet are IP addresses. */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "objects.h"

/* The GID at a place of the port's table; false: there is none. `type`: "IB/RoCE v1", "RoCE v2" or empty. */
bool verbs_gid_query(const struct verbs_port *port, int index, union ibv_gid *gid, char *type, size_t type_size);
/* The GID that stands for an IP address, of IPv4 the mapped one, and back. */
void verbs_gid_encode(const union tcp_address *address, union ibv_gid *gid);
void verbs_gid_decode(const union ibv_gid *gid, union tcp_address *address);

#endif
