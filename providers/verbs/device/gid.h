/* SPDX-License-Identifier: BSD-3-Clause */
/* The GID table of a port. On Ethernet GIDs are IP addresses. */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "objects.h"

/* Query the GID at an index. Returns false if there is none. `type` becomes "IB/RoCE v1", "RoCE v2" or "". */
bool verbs_gid_query(const struct verbs_port *port, int index, union ibv_gid *gid, char *type, size_t type_size);
/* Convert an IP address to a GID (IPv4 as a mapped address), and back. */
void verbs_gid_encode(const union tcp_address *address, union ibv_gid *gid);
void verbs_gid_decode(const union ibv_gid *gid, union tcp_address *address);

#endif
