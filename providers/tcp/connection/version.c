/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on a version of the extension. Each control message says the newest and the oldest version that its sender
 * speaks. If there is no common one, refusal.c ends the connection. A connector checks the answer too, since an older
 * acceptor may not check.
 *
 * The layout of control messages is libfabric's, and with it the place of these versions is the same in all of them.
 */
#include "connection/version.h"

#include <errno.h>

#include "connection/refusal.h"

static struct ofpi_versions get_versions(const struct tcp_control *control)
{
    unsigned newest = tcp_magic_get_version(control->magic);
    unsigned earlier = (unsigned)(control->capabilities >> TCP_CAPABILITY_EARLIER_SHIFT);

    return (struct ofpi_versions){newest, newest > earlier ? newest - earlier : 1};
}

int tcp_version_check(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t private_data[TCP_PRIVATE_MAX])
{
    struct tcp_meeting *meeting = connection->meeting;
    struct ofpi_versions theirs = get_versions(control);

    if (meeting->foreign.newest) {
        tcp_refusal_advance(connection, control, private_data);
        return -EPROTONOSUPPORT;
    }
    if (!connection->endpoint->domain->extension || !theirs.newest ||
        ofpi_versions_are_compatible(TCP_OWN_VERSIONS, theirs))
        return 0;
    meeting->foreign = theirs;
    tcp_refusal_start(connection, control, private_data);
    return -EPROTONOSUPPORT;
}
