/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of both kinds: connected and RDM endpoints use those of tcp, datagram endpoints their own. The length
 * tells which it is.
 */
#ifndef VERBS_ADDRESSES_H
#define VERBS_ADDRESSES_H

#include "ofipy/provider.h"

/* Members of struct ofp_provider. */
int verbs_address_check(const struct ofp_info *info, const void *address, size_t length);
int verbs_address_format(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size);
int verbs_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                          size_t *length, char *text, size_t text_size);
int verbs_info_set_node(struct ofp_info *info, const char *node, char *text, size_t text_size);
int verbs_address_check_route(const struct ofp_info *info, const void *address, size_t length, char *text,
                              size_t text_size);
const void *verbs_address_get_key(const void *address, size_t *length, uint32_t number);
enum ofp_address_relation verbs_address_compare(const void *known, size_t known_length, const void *given,
                                                size_t given_length);

#endif
