/* SPDX-License-Identifier: BSD-3-Clause */
/* The hello in a path request and in its answer: composing ours, and checking the peer's. */
#ifndef OFPI_RDM_HELLO_H
#define OFPI_RDM_HELLO_H

#include "rdm/transfer/rdm.h"

/* Encode our hello for a path that we request or accept. */
void ofpi_rdm_hello_write(const struct ofpi_rdm_path *path, uint8_t bytes[OFPI_RDM_HELLO_SIZE]);
/* Encode the hello of an endpoint without a path: it grants no credits. Returns its length. */
size_t ofpi_rdm_first_hello_write(struct ofpi_channel *channel, uint8_t bytes[OFPI_HELLO_MAX]);
/* Check a hello of the peer that has proved nothing yet. A negative errno, with a text: connect no further. */
int ofpi_rdm_first_hello_check(struct ofpi_path *path, const uint8_t *bytes, size_t length, char *text,
                               size_t text_size);
/* Store the limits, credits and incarnation of the peer's hello in the path. */
void ofpi_rdm_hello_store(struct ofpi_rdm_path *path, const struct ofpi_rdm_hello *hello);
/* Decode and check the hello of a request or of an answer. A negative errno, with a text: reject the peer. */
int ofpi_rdm_request_read(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_path_request *asked,
                          struct ofpi_rdm_hello *hello, char *text, size_t text_size);
int ofpi_rdm_answer_read(struct ofp_peer *peer, const uint8_t *bytes, size_t length, struct ofpi_rdm_hello *hello,
                         char *text, size_t text_size);
/* Whether the request comes from this endpoint itself. */
bool ofpi_rdm_request_is_own(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_rdm_hello *hello);
/* As memcmp of an address and our own address. */
int ofpi_rdm_compare_to_own(const struct ofpi_rdm_endpoint *endpoint, const void *address, size_t length);

#endif
