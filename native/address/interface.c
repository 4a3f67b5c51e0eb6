/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of this host, in the order in which they are offered. */
#include "address/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The source address of a datagram to another network. Nothing is sent. */
static bool find_outward_address(int family, union tcp_address *address)
{
    union tcp_address world;
    socklen_t length = sizeof(*address);
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found;

    if (fd < 0)
        return false;
    memset(&world, 0, sizeof(world));
    world.any.sa_family = (sa_family_t)family;
    /* Addresses for documentation, which no host has (RFC 5737, RFC 3849). */
    if (family == AF_INET6)
        inet_pton(AF_INET6, "2001:db8::1", &world.v6.sin6_addr);
    else
        inet_pton(AF_INET, "198.51.100.1", &world.v4.sin_addr);
    tcp_address_set_port(&world, 9);
    found = connect(fd, &world.any, (socklen_t)tcp_address_get_length(&world)) == 0 &&
            getsockname(fd, &address->any, &length) == 0;
    close(fd);
    return found;
}

static uint8_t count_prefix_bits(const struct sockaddr *mask)
{
    union tcp_address copy;
    size_t length;
    const uint8_t *bytes;
    unsigned bits = 0;

    if (!mask)
        return 0;
    memset(&copy, 0, sizeof(copy));
    memcpy(&copy, mask, mask->sa_family == AF_INET6 ? sizeof(copy.v6) : sizeof(copy.v4));
    bytes = tcp_address_get_ip(&copy, &length);
    for (size_t i = 0; i < length; i++)
        bits += (unsigned)__builtin_popcount(bytes[i]);
    return (uint8_t)bits;
}

static bool is_usable(const struct ifaddrs *entry)
{
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
        return false;
    if (entry->ifa_addr->sa_family == AF_INET6)
        /* Every link has a link-local address, and a peer would have to name the link. */
        return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr);
    return entry->ifa_addr->sa_family == AF_INET;
}

static bool is_wanted_interface(const struct tcp_interface *interface, const char *wanted)
{
    char text[INET6_ADDRSTRLEN];
    size_t length;

    if (!wanted || !wanted[0] || strcmp(wanted, interface->name) == 0)
        return true;
    inet_ntop(interface->address.any.sa_family, tcp_address_get_ip(&interface->address, &length), text, sizeof(text));
    return strcmp(wanted, text) == 0;
}

/* The smaller rank comes first. */
static int compute_rank(const struct tcp_interface *interface, const union tcp_address *outward4,
                        const union tcp_address *outward6)
{
    bool v6 = interface->address.any.sa_family == AF_INET6;

    if (tcp_address_has_same_ip(&interface->address, v6 ? outward6 : outward4))
        return v6 ? 2 : 0;
    return (v6 ? 3 : 1) + (tcp_address_is_loopback(&interface->address) ? 4 : 0);
}

static void sort_interfaces(struct tcp_interface *interfaces, int count)
{
    union tcp_address outward4, outward6;

    memset(&outward4, 0, sizeof(outward4));
    memset(&outward6, 0, sizeof(outward6));
    find_outward_address(AF_INET, &outward4);
    find_outward_address(AF_INET6, &outward6);
    /* Insertion sort: there are few, and equal ranks stay in the order of the kernel. */
    for (int i = 1; i < count; i++) {
        struct tcp_interface moved = interfaces[i];
        int place = i;

        for (; place &&
               compute_rank(&interfaces[place - 1], &outward4, &outward6) > compute_rank(&moved, &outward4, &outward6);
             place--)
            interfaces[place] = interfaces[place - 1];
        interfaces[place] = moved;
    }
}

/* Search the addresses of this host. 0, or a negative errno: they are not known. */
static int find_address_of_host(const union tcp_address *address, bool *found)
{
    struct ifaddrs *all;

    *found = tcp_address_is_loopback(address);
    if (*found)
        return 0;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (const struct ifaddrs *entry = all; entry && !*found; entry = entry->ifa_next) {
        union tcp_address own;

        if (!entry->ifa_addr || entry->ifa_addr->sa_family != address->any.sa_family)
            continue;
        memcpy(&own, entry->ifa_addr, tcp_address_get_length(address));
        *found = tcp_address_has_same_ip(&own, address);
    }
    freeifaddrs(all);
    return 0;
}

bool tcp_is_of_this_host(const union tcp_address *address)
{
    bool found;

    return find_address_of_host(address, &found) != 0 || found;
}

bool tcp_is_known_of_this_host(const union tcp_address *address)
{
    bool found;

    return find_address_of_host(address, &found) == 0 && found;
}

int tcp_interfaces_query(struct tcp_interface interfaces[TCP_INTERFACES_MAX], const char *wanted)
{
    struct ifaddrs *all;
    int count = 0;

    if (getifaddrs(&all) != 0)
        return -errno;
    for (const struct ifaddrs *entry = all; entry && count < TCP_INTERFACES_MAX; entry = entry->ifa_next) {
        struct tcp_interface *interface = &interfaces[count];

        if (!is_usable(entry))
            continue;
        memset(interface, 0, sizeof(*interface));
        memcpy(&interface->address, entry->ifa_addr,
               entry->ifa_addr->sa_family == AF_INET6 ? sizeof(interface->address.v6) : sizeof(interface->address.v4));
        tcp_address_clear_unused(&interface->address);
        strncpy(interface->name, entry->ifa_name, sizeof(interface->name) - 1);
        interface->prefix = count_prefix_bits(entry->ifa_netmask);
        count += is_wanted_interface(interface, wanted);
    }
    freeifaddrs(all);
    sort_interfaces(interfaces, count);
    return count;
}

void tcp_address_choose_any(union tcp_address *any)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;

    memset(any, 0, sizeof(*any));
    any->any.sa_family = AF_INET6;
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0 ||
        bind(fd, &any->any, sizeof(any->v6)) != 0)
        any->any.sa_family = AF_INET;
    if (fd >= 0)
        close(fd);
}

int tcp_addresses_of(const union tcp_address *any, union tcp_address addresses[TCP_INTERFACES_MAX])
{
    struct tcp_interface interfaces[TCP_INTERFACES_MAX];
    int all = tcp_interfaces_query(interfaces, NULL), count = 0;

    for (int i = 0; i < all; i++)
        /* Loopback comes last: it is used only if there is no other address. */
        if ((any->any.sa_family == AF_INET6 || interfaces[i].address.any.sa_family == AF_INET) &&
            (!count || !tcp_address_is_loopback(&interfaces[i].address)))
            addresses[count++] = interfaces[i].address;
    return all < 0 ? all : count;
}
