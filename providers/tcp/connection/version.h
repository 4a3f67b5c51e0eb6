/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_VERSION_H
#define TCP_VERSION_H

#include "objects.h"

/* What this side speaks, as struct ofpi_versions. */
#define TCP_OWN_VERSIONS ((struct ofpi_versions){TCP_EXTENSION_VERSION, TCP_EXTENSION_OLDEST})

/*
 * Check the versions of the extension in a peer's control message, before anything else of it counts. A negative errno:
 * there is no common one, and the message has been handled: the connection is over, or waits for the next message of its
 * refusal. Without the extension nothing is checked.
 */
int tcp_version_check(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t private_data[TCP_PRIVATE_MAX]);

#endif
