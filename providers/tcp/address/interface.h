/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_INTERFACE_H
#define TCP_INTERFACE_H

#include "address/address.h"

#define TCP_INTERFACES_MAX 32

/* An interface's address; the port is 0. */
struct tcp_interface {
    char name[32];
    union tcp_address address;
    uint8_t prefix; /* bits of the network */
};
/* Those that are up, the one that a packet to the world would leave by first, loopback last; `wanted`: a name or address. */
int tcp_interfaces(struct tcp_interface interfaces[TCP_INTERFACES_MAX], const char *wanted);

#endif
