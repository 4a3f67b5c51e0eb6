/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_REFUSAL_H
#define TCP_REFUSAL_H

#include "objects.h"

/*
 * A control message has no version in common with this side: meeting->foreign has the peer's. Both sides report that,
 * and the connection ends: at once, or after both have proved their key.
 */
void tcp_refusal_start(struct tcp_connection *connection, const struct tcp_control *control,
                       const uint8_t private_data[TCP_PRIVATE_MAX]);
/* Handle the next control message of the refusal. */
void tcp_refusal_advance(struct tcp_connection *connection, const struct tcp_control *control,
                         const uint8_t private_data[TCP_PRIVATE_MAX]);

#endif
