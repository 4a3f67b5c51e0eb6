/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of devices of which endpoints are made. A set is found by its name, built from the infos of the providers, and
 * never freed: an info refers to its set by number, and the operation table of a set stays at one address.
 */
#ifndef LINK_SET_H
#define LINK_SET_H

#include "ofipy/provider.h"

#define LINK_NAME "link"
#define LINK_UNPROVEN "its peers prove no key, and one is set (OFIPY_AUTH_KEY_FILE)"

/* Device 0 of a region is link itself, with the key by which cores know the region. The devices of the parts follow. */
#define LINK_DEVICE(part) ((part) + 1)
#define LINK_PARTS_MAX (OFP_DEVICE_LIMIT - 1)

/* One device of a set. */
struct link_part {
    const struct ofp_provider *provider;
    const struct ofp_endpoint_ops *ops;
    struct ofp_info info;
    bool within_host;       /* reaches processes of this host only; addresses contain the host id */
    size_t endpoint_offset; /* of the part's struct link_inner in an endpoint's private part */
    size_t lane_offset;     /* of the part's struct link_lane in a peer's private part */
};

struct link_set {
    struct link_set *next;
    uint64_t number;
    uint32_t count;
    struct link_part parts[LINK_PARTS_MAX]; /* in order of preference */
    struct ofp_info info;                   /* of the set */
    struct ofp_endpoint_ops ops;            /* copy of link_tables.c's table with the sizes of this set */
};

/*
 * Query the infos for a name, "link" or "link:shm+tcp"; as ofp_provider.getinfo. `ops` is the table common to all
 * endpoints; its sizes are those without the parts.
 */
int link_sets_find(const char *name, const struct ofp_endpoint_ops *ops, struct ofp_info *infos, int max, char *text,
                   size_t text_size);
/* A key is configured, and endpoints of this info connect to peers that do not prove it. */
bool link_info_is_unproven(const struct ofp_info *info);
/* The set of an info; NULL if the info is NULL or comes from another process. */
const struct link_set *link_set_of(const struct ofp_info *info);
/* Replace the set of an info by the same set at a node of this host; as ofp_provider.at_node. */
int link_set_choose_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size);

#endif
