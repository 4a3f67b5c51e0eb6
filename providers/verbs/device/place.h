/* SPDX-License-Identifier: BSD-3-Clause */
/* Where endpoints can be: addresses of this host that lead to a device's port that is up. */
#ifndef VERBS_PLACE_H
#define VERBS_PLACE_H

#include "address/interface.h"
#include "objects.h"

struct verbs_place {
    struct tcp_interface interface;
    struct verbs_port *port;
};

/* Whether the program has chosen a name or address for all that reaches the network. */
bool verbs_interface_is_chosen(void);
/*
 * All that the settings allow, best first: by speed, then by distance to the calling thread, then in the order of the interfaces.
 * None and a text, or none and no text where there is nothing to choose from.
 */
int verbs_places_find(struct verbs_place places[TCP_INTERFACES_MAX], char *text, size_t text_size);
/* The address that an info stands for. */
void verbs_info_get_address(const struct ofp_info *info, union tcp_address *address);
void verbs_info_set_address(struct ofp_info *info, const union tcp_address *address);
/* The name of the network: "192.0.2.0/24"; for InfiniBand of the subnet. */
void verbs_place_format_network(const struct verbs_place *place, char *text, size_t text_size);

#endif
