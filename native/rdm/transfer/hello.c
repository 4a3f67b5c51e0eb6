/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incarnation and identity of an endpoint are no secret: every connected peer learns them, and a hostile peer may
 * send them back. So an endpoint recognises a request of its own by another number, own_request, which it sends only
 * to its own address.
 */
#include "rdm/transfer/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int ofpi_rdm_compare_to_own(const struct ofpi_rdm_endpoint *endpoint, const void *address, size_t length)
{
    uint8_t own[OFP_ADDRESS_MAX];
    size_t own_length = sizeof(own);
    int order;

    if (endpoint->base->ops->name(endpoint->base, own, &own_length) != 0)
        return 1;
    order = memcmp(address, own, length < own_length ? length : own_length);
    return order ? order : (length > own_length) - (length < own_length);
}

static uint64_t choose_incarnation(const struct ofpi_rdm_path *path)
{
    const struct ofp_peer *peer = path->base.peer;

    if (path->opened && ofpi_rdm_compare_to_own(path->endpoint, peer->address, peer->address_length) == 0)
        return path->endpoint->own_request;
    return path->endpoint->incarnation;
}

void ofpi_rdm_hello_write(const struct ofpi_rdm_path *path, uint8_t bytes[OFPI_RDM_HELLO_SIZE])
{
    const struct ofpi_rdm_endpoint *endpoint = path->endpoint;
    const uint16_t *first = path->credits.window;
    struct ofpi_rdm_hello hello = {
        .version = OFPI_RDM_VERSION,
        .oldest = OFPI_RDM_OLDEST,
        .connects_only = endpoint->base->connects_only,
        .packet_size = endpoint->channel.limits.packet_size,
        .credits = {first[OFPI_CREDIT_REQUEST], first[OFPI_CREDIT_ANSWER]},
        .incarnation = choose_incarnation(path),
    };

    memcpy(hello.identity, endpoint->base->identity, sizeof(hello.identity));
    ofpi_rdm_hello_encode(&hello, bytes);
}

size_t ofpi_rdm_first_hello_write(struct ofpi_channel *channel, uint8_t bytes[OFPI_HELLO_MAX])
{
    const struct ofpi_rdm_endpoint *endpoint = (const struct ofpi_rdm_endpoint *)channel;
    struct ofpi_rdm_hello hello = {
        .version = OFPI_RDM_VERSION,
        .oldest = OFPI_RDM_OLDEST,
        .connects_only = endpoint->base->connects_only,
        .packet_size = channel->limits.packet_size,
        .credits = {1, 1}, /* the least that a hello may have; the answer states those that are granted */
        .incarnation = endpoint->incarnation,
    };

    _Static_assert(OFPI_RDM_HELLO_SIZE <= OFPI_HELLO_MAX, "the hello fits");
    memcpy(hello.identity, endpoint->base->identity, sizeof(hello.identity));
    ofpi_rdm_hello_encode(&hello, bytes);
    return OFPI_RDM_HELLO_SIZE;
}

void ofpi_rdm_hello_store(struct ofpi_rdm_path *path, const struct ofpi_rdm_hello *hello)
{
    if (hello->packet_size < path->packet_size)
        path->packet_size = hello->packet_size;
    path->incarnation = hello->incarnation;
    ofpi_credit_receive(&path->credits, hello->credits);
}

static bool is_hello_of_endpoint(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_rdm_hello *hello)
{
    return hello->incarnation == endpoint->incarnation ||
           memcmp(hello->identity, endpoint->base->identity, sizeof(hello->identity)) == 0;
}

bool ofpi_rdm_request_is_own(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_rdm_hello *hello)
{
    return hello->incarnation == endpoint->own_request;
}

int ofpi_rdm_request_read(const struct ofpi_rdm_endpoint *endpoint, const struct ofpi_path_request *asked,
                          struct ofpi_rdm_hello *hello, char *text, size_t text_size)
{
    int error = ofpi_rdm_hello_decode(asked->hello, asked->hello_length, hello, text, text_size);

    if (error || ofpi_rdm_request_is_own(endpoint, hello) || !is_hello_of_endpoint(endpoint, hello))
        return error;
    snprintf(text, text_size, "it says that it is this endpoint itself");
    return -ECONNREFUSED;
}

/* The peer is this endpoint if, and only if, the endpoint has accepted its own request. */
static int check_answering_peer(const struct ofpi_rdm_endpoint *endpoint, bool is_own,
                                const struct ofpi_rdm_hello *hello, char *text, size_t text_size)
{
    if (is_own == is_hello_of_endpoint(endpoint, hello))
        return 0;
    snprintf(text, text_size, "who answered says that it is %s", is_own ? "another endpoint" : "this endpoint itself");
    return -ECONNREFUSED;
}

int ofpi_rdm_first_hello_check(struct ofpi_path *base, const uint8_t *bytes, size_t length, char *text,
                               size_t text_size)
{
    const struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_path_of(base)->endpoint;
    struct ofp_peer *peer = base->peer;
    struct ofpi_rdm_hello hello;
    int error;

    if (!peer)
        return -ECANCELED;
    error = ofpi_rdm_hello_decode(bytes, length, &hello, text, text_size);
    if (!error)
        error =
            check_answering_peer(endpoint, ofpi_rdm_compare_to_own(endpoint, peer->address, peer->address_length) == 0,
                                 &hello, text, text_size);
    return error ? error : ofp_peer_identity_check(peer, hello.identity, text, text_size);
}

int ofpi_rdm_answer_read(struct ofp_peer *peer, const uint8_t *bytes, size_t length, struct ofpi_rdm_hello *hello,
                         char *text, size_t text_size)
{
    const struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    int error = ofpi_rdm_hello_decode(bytes, length, hello, text, text_size);

    if (!error)
        error = check_answering_peer(endpoint, ofpi_rdm_peer_of(peer)->other, hello, text, text_size);
    return error ? error : ofp_peer_identified(peer, hello->identity, text, text_size);
}
