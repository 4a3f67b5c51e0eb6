/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on a version of the extension. Each control message says the newest and the oldest version that its sender
 * speaks. The acceptor rejects a request that has no version in common with it: the NACK says its own versions, so that
 * the connector reports the same. A connector checks the answer too, since an older acceptor may not check.
 *
 * The layout of control messages is libfabric's, and with it the place of these versions is the same in all of them.
 */
#include "connection/version.h"

#include <errno.h>

#include "connection/connection.h"
#include "connection/control.h"
#include "meet/versions.h"

static struct ofpi_versions get_versions(const struct tcp_control *control)
{
    unsigned newest = tcp_magic_get_version(control->magic);
    unsigned earlier = (unsigned)(control->capabilities >> TCP_CAPABILITY_EARLIER_SHIFT);

    return (struct ofpi_versions){newest, newest > earlier ? newest - earlier : 1};
}

/*
 * The peer that sent this request, by the address at which it listens. NULL: an endpoint that proves keys believes no
 * request before the proof, and there will be none.
 */
static struct ofp_peer *find_caller(struct tcp_connection *connection, const struct tcp_control *control,
                                    const uint8_t *private_data)
{
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    union tcp_address address;
    struct tcp_rdm rdm;

    if (!endpoint || connection->endpoint->connects || connection->meeting->key_length ||
        control->type != TCP_CONNREQ || control->private_size < TCP_RDM_SIZE)
        return NULL;
    tcp_rdm_decode(private_data, &rdm);
    if (!tcp_connection_get_listening_address(connection, rdm.port, &address))
        return NULL;
    return ofp_peer_by_address(endpoint, &address, tcp_address_get_length(&address));
}

static void reject_for_version(struct tcp_connection *connection, const struct tcp_control *control,
                               const uint8_t *private_data, const char *text)
{
    struct ofp_peer *peer = find_caller(connection, control, private_data);

    tcp_refusal_log(connection, text);
    tcp_extension_accept(connection, control);
    tcp_request_reject(connection, NULL, 0);
    ofpi_versions_fail_caller(peer, text);
}

int tcp_version_check(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t private_data[TCP_PRIVATE_MAX])
{
    const struct ofpi_versions ours = {TCP_EXTENSION_VERSION, TCP_EXTENSION_OLDEST};
    struct ofpi_versions theirs = get_versions(control);
    char text[OFP_TEXT_MAX];

    if (!connection->endpoint->domain->extension || !theirs.newest || ofpi_versions_are_compatible(ours, theirs))
        return 0;
    ofpi_versions_describe("the tcp extension", ours, theirs, text, sizeof(text));
    if (connection->connector)
        tcp_connection_end(connection, EPROTONOSUPPORT, false, text);
    else
        reject_for_version(connection, control, private_data, text);
    return -EPROTONOSUPPORT;
}
