/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDM endpoints: the contents of requests, the meaning of answers, and what the end of a connection says about its peer.
 */
#include "endpoint/rdm.h"

#include <errno.h>
#include <unistd.h>

#include "address/interface.h"
#include "connection/accept.h"
#include "connection/auth.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/credit.h"
#include "connection/key.h"
#include "endpoint/common.h"
#include "connection/listen.h"
#include "connection/race.h"
#include "connection/secure.h"

static int send_rdm_request(struct tcp_connection *connection)
{
    struct tcp_rdm rdm = {.version = TCP_RDM_VERSION,
                          .features = connection->endpoint->base->connects_only ? TCP_RDM_CONNECTS_ONLY : 0,
                          .port = tcp_address_get_port(&connection->endpoint->address),
                          .pid = (uint32_t)getpid()};

    return tcp_rdm_send(connection, TCP_CONNREQ, &rdm);
}

static enum tcp_key_place convert_key_reason(const struct tcp_connection *connection, uint8_t reason)
{
    bool is_there = !connection->meeting->key_length;

    return is_there && reason == TCP_REFUSED_LOCALLY ? TCP_LOCAL_KEY_IS_THERE : tcp_key_find_place(connection);
}

/* The acceptor demands our identity: send the request again, with it. */
static void request_with_identity(struct tcp_connection *connection)
{
    int error;

    connection->meeting->identified = true;
    connection->meeting->received = 0;
    error = send_rdm_request(connection);
    if (error)
        tcp_connection_end(connection, -error, false, NULL);
}

static void handle_rdm_answer(struct tcp_connection *connection, const struct tcp_control *control,
                              const uint8_t *private_data)
{
    struct tcp_rdm rdm;

    if (control->private_size == 1 && control->type == TCP_NACK && private_data[0] == TCP_REFUSED_UNENCRYPTED &&
        tcp_connect_retry_encrypted(connection))
        return;
    if (!tcp_encryption_check_answer(connection, control, private_data))
        return;
    if (!control->private_size && control->type == TCP_CONNRESP && !connection->meeting->identified &&
        tcp_control_can_identify(connection, control)) {
        request_with_identity(connection);
        return;
    }
    if (control->private_size == 1 && control->type == TCP_NACK) {
        tcp_connection_end_for_key(connection, ECONNREFUSED, convert_key_reason(connection, private_data[0]));
        return;
    }
    if (control->type == TCP_CONNREQ ||
        control->private_size != tcp_rdm_compute_size(connection, (enum tcp_control_type)control->type)) {
        tcp_connection_end(connection, ECONNREFUSED, false,
                           "the peer speaks another protocol over tcp, as ofi_rxm" TCP_RXM_REMEDY);
        return;
    }
    tcp_rdm_decode(private_data, &rdm);
    if (control->type == TCP_NACK) {
        /* The peer's own request is in flight, or the peer has not noticed the end of an earlier connection. */
        tcp_request_deferred(connection);
        return;
    }
    connection->swapped = control->swapped;
    connection->can_rendezvous = rdm.version == (TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD) && !control->swapped;
    tcp_extension_accept(connection, control);
    connection->incarnation = rdm.pid;
    if (connection->meeting->identified)
        tcp_identity_store(connection, private_data + TCP_RDM_SIZE);
    if (connection->meeting->key_length) {
        tcp_peer_get_reached(connection->peer, &connection->meeting->address);
        if (tcp_control_can_prove(control))
            tcp_auth_start(connection);
        else
            tcp_connection_end_for_key(connection, EACCES, tcp_key_find_place(connection));
        return;
    }
    if (connection->extended)
        tcp_hello_send(connection);
    tcp_request_accepted(connection);
}

static void handle_rdm_proof(struct tcp_connection *connection)
{
    OFP_CHECK(connection->state == TCP_PROVING);
    if (connection->connector)
        tcp_request_accepted(connection);
    else
        tcp_request_serve(connection, NULL, NULL);
}

static void handle_rdm_loss(struct tcp_connection *connection, int error)
{
    if (connection->goodbye)
        tcp_connection_end(connection, connection->ended ? OFP_EPEERLOST : ECONNRESET, connection->ended,
                           connection->ended ? "its endpoint was closed" : "it ended the connection");
    else
        tcp_connection_end_as(connection,
                              &(struct ofpi_meeting_end){.error = error ? error : ECONNRESET, .unsure = true});
}

static const struct tcp_connection_ops connection_ops = {
    .meeting = &tcp_meeting_ops,
    .request = send_rdm_request,
    .answered = handle_rdm_answer,
    .requested = tcp_request_arrived,
    .proven = handle_rdm_proof,
    .lost = handle_rdm_loss,
};

int tcp_rdm_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    int error = tcp_endpoint_open_common(endpoint, base->domain, &connection_ops, false);

    if (error)
        return error;
    endpoint->base = base;
    tcp_info_get_address(base->info, &endpoint->address);
    if (base->listens_if_asked && !tcp_info_is_chosen(base->info)) {
        tcp_address_choose_any(&endpoint->address);
        base->connects_only = !tcp_domain_has_key(endpoint->domain);
    }
    /* Proofs are part of the extension. */
    endpoint->domain->extension |= base->local_key != NULL;
    /* As a part of link it may have peers on this host alone, over shared memory. */
    error = base->listens_if_asked ? 0 : tcp_encryption_check(endpoint->domain, text, text_size);
    if (!error)
        error = tcp_listener_bind(endpoint, service, text, text_size);
    if (!error && !base->connects_only)
        error = tcp_listener_start(endpoint);
    if (error)
        tcp_endpoint_close_common(endpoint);
    return error;
}
