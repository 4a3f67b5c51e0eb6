/* SPDX-License-Identifier: BSD-3-Clause */
#include "address/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ bytes */

const uint8_t *tcp_address_get_ip(const union tcp_address *address, size_t *length)
{
    if (address->any.sa_family == AF_INET6) {
        *length = sizeof(address->v6.sin6_addr);
        return address->v6.sin6_addr.s6_addr;
    }
    *length = sizeof(address->v4.sin_addr);
    return (const uint8_t *)&address->v4.sin_addr;
}

bool tcp_address_has_same_ip(const union tcp_address *a, const union tcp_address *b)
{
    size_t length_a, length_b;
    const uint8_t *ip_a = tcp_address_get_ip(a, &length_a), *ip_b = tcp_address_get_ip(b, &length_b);

    return a->any.sa_family == b->any.sa_family && memcmp(ip_a, ip_b, length_a) == 0;
}

bool tcp_address_is_loopback(const union tcp_address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

void tcp_address_set_loopback(union tcp_address *address)
{
    if (address->any.sa_family == AF_INET6)
        address->v6.sin6_addr = in6addr_loopback;
    else
        address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

bool tcp_address_is_any(const union tcp_address *address)
{
    static const uint8_t zeros[16];
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);

    return memcmp(ip, zeros, length) == 0;
}

/* Convert an IPv4 address from the form in which a socket of both families reports it. */
static void convert_mapped_ip(union tcp_address *address)
{
    struct in6_addr ip = address->v6.sin6_addr;
    uint16_t port = tcp_address_get_port(address);

    if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&ip))
        return;
    memset(address, 0, sizeof(*address));
    address->any.sa_family = AF_INET;
    memcpy(&address->v4.sin_addr, ip.s6_addr + 12, sizeof(address->v4.sin_addr));
    tcp_address_set_port(address, port);
}

void tcp_address_clear_unused(union tcp_address *address)
{
    union tcp_address clean;

    convert_mapped_ip(address);
    memset(&clean, 0, sizeof(clean));
    clean.any.sa_family = address->any.sa_family;
    tcp_address_set_port(&clean, tcp_address_get_port(address));
    if (address->any.sa_family == AF_INET6) {
        clean.v6.sin6_addr = address->v6.sin6_addr;
        clean.v6.sin6_scope_id = address->v6.sin6_scope_id;
    } else {
        clean.v4.sin_addr = address->v4.sin_addr;
    }
    *address = clean;
}

int tcp_address_parse(const void *bytes, size_t length, union tcp_address *address)
{
    union tcp_address clean;

    memset(address, 0, sizeof(*address));
    if (length != sizeof(address->v4) && length != sizeof(address->v6))
        return -EINVAL;
    memcpy(address, bytes, length);
    if (address->any.sa_family != (length == sizeof(address->v4) ? AF_INET : AF_INET6) ||
        !tcp_address_get_port(address))
        return -EINVAL;
    clean = *address;
    tcp_address_clear_unused(&clean);
    clean.v6.sin6_flowinfo = length == sizeof(address->v6) ? address->v6.sin6_flowinfo : clean.v6.sin6_flowinfo;
    return memcmp(&clean, address, length) == 0 ? 0 : -EINVAL;
}

int tcp_address_compare(const union tcp_address *a, const union tcp_address *b)
{
    size_t length_a, length_b;
    const uint8_t *ip_a = tcp_address_get_ip(a, &length_a), *ip_b = tcp_address_get_ip(b, &length_b);
    int result = length_a == length_b ? memcmp(ip_a, ip_b, length_a) : (int)length_a - (int)length_b;

    return result ? result : (int)tcp_address_get_port(a) - (int)tcp_address_get_port(b);
}

int tcp_address_format(const void *bytes, size_t length, char *text, size_t text_size)
{
    union tcp_address address;
    char host[INET6_ADDRSTRLEN];
    size_t ip_length;
    int result;

    result = tcp_address_parse(bytes, length, &address);
    if (result)
        return result;
    inet_ntop(address.any.sa_family, tcp_address_get_ip(&address, &ip_length), host, sizeof(host));
    result = snprintf(text, text_size, address.any.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
                      tcp_address_get_port(&address));
    return (size_t)result < text_size ? 0 : -OFP_ETOOSMALL;
}

/* ------------------------------------------------------------------------------------------------------------- infos */

void tcp_info_set_address(struct ofp_info *info, const union tcp_address *address)
{
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);

    memset(info->provider_data, 0, 2 * sizeof(info->provider_data[0]));
    memcpy(info->provider_data, ip, length);
    info->address_format = address->any.sa_family == AF_INET6 ? OFP_ADDRESS_IPV6 : OFP_ADDRESS_IPV4;
}

void tcp_info_get_address(const struct ofp_info *info, union tcp_address *address)
{
    size_t length;

    memset(address, 0, sizeof(*address));
    address->any.sa_family = info->address_format == OFP_ADDRESS_IPV6 ? AF_INET6 : AF_INET;
    memcpy((uint8_t *)(uintptr_t)tcp_address_get_ip(address, &length), info->provider_data,
           address->any.sa_family == AF_INET6 ? 16 : 4);
}

void tcp_info_set_any(struct ofp_info *info, const union tcp_address *any)
{
    tcp_info_set_address(info, any);
    info->caps |= OFP_CAP_REMOTE_COMM;
    strcpy(info->domain, "any");
    strcpy(info->fabric, any->any.sa_family == AF_INET6 ? "::/0" : "0.0.0.0/0");
}
