/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that listens on every address sends all of them, and not each one reaches it from here: private networks use
 * the same addresses in many places. The nearest is tried first: an address in one of our networks, then the address
 * with the longest prefix in common with one of ours. A bridge for containers has the same address on every host, so
 * an address that we have too is not the peer's.
 */
#include "address/order.h"
#include "ofipy/check.h"

/* More than the bits that any two addresses have in common. */
#define IN_OUR_NETWORK 1000
#define OF_NO_FAMILY_OF_OURS (-1)

/* Common leading bits, scaled to 128 for both families. */
static int count_common_bits(const union tcp_address *a, const union tcp_address *b)
{
    size_t length, bytes = 0;
    const uint8_t *ip_a = tcp_address_get_ip(a, &length), *ip_b = tcp_address_get_ip(b, &length);
    int bits = 0;

    while (bytes < length && ip_a[bytes] == ip_b[bytes])
        bytes++;
    if (bytes < length)
        bits = __builtin_clz((unsigned)(ip_a[bytes] ^ ip_b[bytes])) - 24;
    return (int)((bytes * 8 + (size_t)bits) * 16 / length);
}

static bool is_own_address(const union tcp_address *address, const struct tcp_interface *own, int own_count)
{
    bool found = tcp_address_is_loopback(address);

    for (int i = 0; i < own_count && !found; i++)
        found = tcp_address_has_same_ip(address, &own[i].address);
    return found;
}

/* The larger value comes first. */
static int compute_nearness(const union tcp_address *address, const struct tcp_interface *own, int own_count)
{
    int nearest = OF_NO_FAMILY_OF_OURS;

    for (int i = 0; i < own_count; i++) {
        int common;

        if (own[i].address.any.sa_family != address->any.sa_family)
            continue;
        common = count_common_bits(address, &own[i].address);
        if (common >= own[i].prefix * (address->any.sa_family == AF_INET6 ? 1 : 4))
            common += IN_OUR_NETWORK;
        if (common > nearest)
            nearest = common;
    }
    return nearest;
}

uint32_t tcp_addresses_sort(const union tcp_address *addresses, uint32_t count, const struct tcp_interface *own,
                            int own_count, uint32_t *order)
{
    bool all_own = true;
    uint32_t sorted = 0;

    for (uint32_t i = 0; i < count; i++)
        all_own &= is_own_address(&addresses[i], own, own_count);
    for (uint32_t i = 0; i < count; i++) {
        int near = compute_nearness(&addresses[i], own, own_count);
        uint32_t place = sorted;

        if (!all_own && is_own_address(&addresses[i], own, own_count))
            continue;
        /* Insertion sort: there are few, and equal ones stay in the order of the peer. */
        for (; place && compute_nearness(&addresses[order[place - 1]], own, own_count) < near; place--)
            order[place] = order[place - 1];
        order[place] = i;
        sorted++;
    }
    OFP_CHECK(sorted <= count && (sorted > 0 || count == 0));
    return sorted;
}
