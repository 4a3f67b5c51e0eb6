/* SPDX-License-Identifier: BSD-3-Clause */
/* The hello that asks for a path or accepts one: writing ours, and refusing a peer's that cannot be true. */
#ifndef OFPI_RDM_HELLO_H
#define OFPI_RDM_HELLO_H

#include "rdm/transfer/rdm.h"

/* Ours, for a path that we ask for or accept. */
void ofpi_rdm_hello_write(const struct ofpi_rdm_path *path, uint8_t bytes[OFPI_RDM_HELLO_SIZE]);
/* The peer's holds for the path. */
void ofpi_rdm_hello_store(struct ofpi_rdm_path *path, const struct ofpi_rdm_hello *hello);
/* False, with a text: it has to be refused. */
bool ofpi_rdm_request_read(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_path_request *asked,
                           struct ofpi_rdm_hello *hello, char *text, size_t text_size);
bool ofpi_rdm_answer_read(struct ofp_peer *peer, const uint8_t *bytes, size_t length, struct ofpi_rdm_hello *hello,
                          char *text, size_t text_size);
/* Whether this endpoint has asked itself. */
bool ofpi_rdm_request_is_own(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_rdm_hello *hello);
/* As memcmp of an address and our own. */
int ofpi_rdm_compare_to_own(const struct ofpi_rdm_endpoint *endpoint, const void *address, size_t length);

#endif
