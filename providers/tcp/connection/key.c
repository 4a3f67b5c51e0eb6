/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which key a connection proves. A domain has a ring of keys: its own, and those that it accepts too
 * (OFIPY_AUTH_KEY_FILE_ACCEPTED), so that processes can change to a new key one by one. The connector begins with its own,
 * and if the peer refuses that, tries the next one in a further attempt. The acceptor proves the key that the connector
 * has proven. So two sides with one key in common connect, whoever begins. The caller holds the domain's lock.
 */
#include "connection/key.h"

#include <errno.h>

#include "address/interface.h"
#include "connection/connection.h"
#include "stream/socket.h"

static void set_ring_key(struct tcp_meeting *meeting, uint32_t number)
{
    const struct ofpi_key *key = &meeting->ring->keys[number].key;

    meeting->key = key->bytes;
    meeting->key_length = key->length;
}

int tcp_key_choose(struct tcp_connection *connection)
{
    struct tcp_domain *domain = connection->endpoint->domain;
    const struct ofp_endpoint *base = connection->endpoint->base;
    struct tcp_meeting *meeting = connection->meeting;
    union tcp_address theirs;

    if (!tcp_socket_get_peer_address(connection->stream.fd, &theirs))
        return -errno;
    ofpi_key_files_update_and_log(&domain->keys, tcp_core, TCP_NAME);
    if (meeting->ring != domain->keys.ring) {
        ofpi_keyring_release(meeting->ring);
        meeting->ring = ofpi_keyring_retain(domain->keys.ring);
        meeting->key_number = 0;
    }
    if (meeting->ring) {
        set_ring_key(meeting, meeting->key_number);
    } else if (base && base->local_key && tcp_is_of_this_host(&theirs)) {
        meeting->key = base->local_key;
        meeting->key_length = OFP_KEY_SIZE;
    }
    return 0;
}

bool tcp_key_verify(const struct tcp_connection *connection, const struct ofpi_transcript *transcript,
                    const uint8_t proof[OFPI_PROOF_SIZE])
{
    struct tcp_meeting *meeting = connection->meeting;
    uint32_t count = meeting->ring && !connection->connector ? meeting->ring->count : 0;

    if (ofpi_proof_is_valid(meeting->key, meeting->key_length, transcript, proof))
        return true;
    for (uint32_t i = 1; i < count; i++) {
        const struct ofpi_key *key = &meeting->ring->keys[i].key;

        if (ofpi_proof_is_valid(key->bytes, key->length, transcript, proof)) {
            set_ring_key(meeting, i);
            return true;
        }
    }
    return false;
}

bool tcp_key_advance(const struct tcp_connection *connection)
{
    return ofpi_keyring_advance(connection->meeting->ring, &connection->meeting->key_number);
}
