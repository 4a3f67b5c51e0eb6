/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of devices that endpoints are made of: found by name, composed of the providers' infos, and kept for ever, so that an info
 * may name one by its number, and tables made for one stay where they are.
 */
#ifndef LINK_SET_H
#define LINK_SET_H

#include "ofipy/provider.h"

#define LINK_NAME "link"

/* Of a region the first device is link's own: the key by which cores know it. Those of its parts follow. */
#define LINK_DEVICE(part) ((part) + 1)
#define LINK_PARTS_MAX (OFP_DEVICE_LIMIT - 1)

/* One device. */
struct link_part {
    const struct ofp_provider *provider;
    const struct ofp_endpoint_ops *ops;
    struct ofp_info info;
    bool within_host;       /* it reaches processes of this host only, which addresses tell by their host id */
    size_t endpoint_offset; /* of its struct link_inner in an endpoint's private part */
    size_t lane_offset;     /* of its struct link_lane in a peer's private part */
};

struct link_set {
    struct link_set *next;
    uint64_t number;
    uint32_t count;
    struct link_part parts[LINK_PARTS_MAX]; /* the preferred first */
    struct ofp_info info;                   /* of the whole */
    struct ofp_endpoint_ops ops;            /* link_tables.c's, with the sizes of this set */
};

/*
 * Infos of what the name stands for, "link" or "link:shm+tcp": as ofp_provider.getinfo. The table is that of all endpoints, whose
 * sizes are those without the parts' own.
 */
int link_sets_find(const char *name, const struct ofp_endpoint_ops *ops, struct ofp_info *infos, int max, char *text,
                   size_t text_size);
/* The set of an info; NULL: it is of another process. */
const struct link_set *link_set_of(const struct ofp_info *info);
/* The same set at a node of this host; as ofp_provider.at_node. */
int link_set_choose_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size);

#endif
