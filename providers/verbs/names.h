/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of both kinds, told apart by their length: those of connected endpoints, which are tcp's, and of datagram endpoints. */
#ifndef VERBS_NAMES_H
#define VERBS_NAMES_H

#include "ofipy/provider.h"

/* As the entries of struct ofp_provider say. */
int verbs_name_check(const struct ofp_info *info, const void *address, size_t length);
int verbs_name_format(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size);
int verbs_name_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                       size_t *length, char *text, size_t text_size);
int verbs_name_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size);
int verbs_name_reaches(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size);
const void *verbs_name_key(const void *address, size_t *length, uint32_t number);
enum ofp_address_relation verbs_name_relation(const void *known, size_t known_length, const void *given,
                                              size_t given_length);

#endif
