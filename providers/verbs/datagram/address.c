/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device/gid.h"

#define QPN_MAX 0xffffff
#define DEFAULT_PKEY 0xffff
/* The part behind the queue pair number. */
#define REST ".lid%hu.sl%hhu.pkey%hx"

int verbs_datagram_address_decode(const void *bytes, size_t length, struct verbs_datagram_address *address)
{
    if (length != sizeof(*address))
        return -EINVAL;
    memcpy(address, bytes, sizeof(*address));
    /* An address without a GID needs a LID. */
    if (!address->qpn || address->qpn > QPN_MAX || (!address->gid.global.interface_id && !address->lid))
        return -EINVAL;
    return 0;
}

int verbs_datagram_address_format(const struct verbs_datagram_address *address, char *text, size_t text_size)
{
    char host[INET6_ADDRSTRLEN], rest[48] = "";
    union tcp_address ip;
    size_t ip_length;
    int length;

    verbs_gid_decode(&address->gid, &ip);
    inet_ntop(ip.any.sa_family, tcp_address_get_ip(&ip, &ip_length), host, sizeof(host));
    if (address->lid || address->sl || ntohs(address->pkey) != DEFAULT_PKEY)
        snprintf(rest, sizeof(rest), REST, address->lid, address->sl, ntohs(address->pkey));
    length =
        snprintf(text, text_size, ip.any.sa_family == AF_INET6 ? "[%s]:qp%u%s" : "%s:qp%u%s", host, address->qpn, rest);
    return (size_t)length < text_size ? 0 : -OFP_ETOOSMALL;
}

static bool parse_host(const char *node, union ibv_gid *gid)
{
    union tcp_address ip = {0};

    ip.any.sa_family = node && strchr(node, ':') ? AF_INET6 : AF_INET;
    if (!node || inet_pton(ip.any.sa_family, node,
                           ip.any.sa_family == AF_INET6 ? (void *)&ip.v6.sin6_addr : (void *)&ip.v4.sin_addr) != 1)
        return false;
    verbs_gid_encode(&ip, gid);
    return true;
}

int verbs_datagram_address_parse(const char *node, const char *service, struct verbs_datagram_address *address,
                                 char *text, size_t text_size)
{
    struct verbs_datagram_address read = {.pkey = htons(DEFAULT_PKEY)};
    uint16_t pkey;
    int end = 0, behind = 0;
    bool good;

    good = parse_host(node, &read.gid) && sscanf(service, "qp%u%n", &read.qpn, &end) == 1;
    if (good && service[end]) {
        good = sscanf(service + end, REST "%n", &read.lid, &read.sl, &pkey, &behind) == 3 && !service[end + behind];
        read.pkey = htons(pkey);
    }
    if (good && verbs_datagram_address_decode(&read, sizeof(read), address) == 0)
        return 0;
    snprintf(text, text_size, "%s:%s is no address of a datagram endpoint, such as 203.0.113.1:qp17 or its bytes",
             node ? node : "", service);
    return -EINVAL;
}
