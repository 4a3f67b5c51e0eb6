/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_VERSION_H
#define TCP_VERSION_H

#include "objects.h"

/*
 * Check the versions of the extension in a peer's control message, before anything else of it counts. A negative errno:
 * there is no common one, both sides report that, and the connection is over. Without the extension nothing is checked.
 */
int tcp_version_check(struct tcp_connection *connection, const struct tcp_control *control,
                      const uint8_t private_data[TCP_PRIVATE_MAX]);

#endif
