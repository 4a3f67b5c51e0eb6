/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of senders in remote CQ data, for transports that report no sender whose address the receiver has not inserted.
 *
 * A name consists of 48 bits for an address, and 16 check bits that are computed from them and are never all 0. So no
 * number below 2^48 is a valid name, and of larger numbers one in about 65,536 is.
 */
#ifndef OFIPY_SENDER_H
#define OFIPY_SENDER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>

#define OFP_SENDER_BITS 48

static inline uint64_t ofp_sender_check(uint64_t who)
{
    uint64_t check = ((who + 0x6f666970) * 0x9e3779b97f4a7c15ull) >> OFP_SENDER_BITS;

    return (check ? check : 0x6f66) << OFP_SENDER_BITS;
}

/* The name of sender `who`, which is not 0 and has at most 48 bits. */
static inline uint64_t ofp_sender_name(uint64_t who) { return ofp_sender_check(who) | who; }

/* The sender of a name; 0: the number is no name. */
static inline uint64_t ofp_sender_of(uint64_t name)
{
    uint64_t who = name & ((1ull << OFP_SENDER_BITS) - 1);

    return ofp_sender_name(who) == name ? who : 0;
}

static inline uint64_t ofp_sender_of_ipv4(const struct sockaddr_in *address)
{
    return (uint64_t)ntohs(address->sin_port) << 32 | ntohl(address->sin_addr.s_addr);
}

#endif
