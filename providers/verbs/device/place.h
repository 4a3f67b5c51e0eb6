/* SPDX-License-Identifier: BSD-3-Clause */
/* Places for endpoints: local addresses whose device port is up. */
#ifndef VERBS_PLACE_H
#define VERBS_PLACE_H

#include "address/interface.h"
#include "objects.h"

struct verbs_place {
    struct tcp_interface interface;
    struct verbs_port *port;
};

/* Whether the program has chosen a name or address for the network. */
bool verbs_interface_is_chosen(void);
/*
 * Find all places that the settings allow: the fastest port first, then the nearest to the calling thread, then in the
 * order of the interfaces. If none is found, `text` has the reason, or is empty if no device exists.
 */
int verbs_places_find(struct verbs_place places[TCP_INTERFACES_MAX], char *text, size_t text_size);
/* Get or set the address of an info. */
void verbs_info_get_address(const struct ofp_info *info, union tcp_address *address);
void verbs_info_set_address(struct ofp_info *info, const union tcp_address *address);
/* Format the name of the network: "192.0.2.0/24", or the subnet prefix of InfiniBand. */
void verbs_place_format_network(const struct verbs_place *place, char *text, size_t text_size);

#endif
