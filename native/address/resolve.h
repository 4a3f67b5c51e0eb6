/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RESOLVE_H
#define TCP_RESOLVE_H

#include "address/address.h"

/* Parse a port number or the name of a service; NULL: 0. -EINVAL with a text. */
int tcp_service_parse(const char *service, uint16_t *port, char *text, size_t text_size);
/*
 * As the members of struct ofp_provider. `node` is NULL, "localhost" or the name of this host: the address of the
 * endpoints of this info.
 */
int tcp_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                        size_t *length, char *text, size_t text_size);
int tcp_info_resolve_node(struct ofp_info *info, const char *node, char *text, size_t text_size);
int tcp_address_check_reachable(const struct ofp_info *info, const void *address, size_t length, char *text,
                                size_t text_size);

#endif
