/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of endpoints on this host, as libfabric reports them, and the addresses that they can connect to. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bridge.h"

bool bridge_node_format_own(const struct lf_info *info, char *node, size_t size)
{
    const struct sockaddr *address = info->src_addr;

    if (info->addr_format == LF_SOCKADDR_IN)
        return address &&
               inet_ntop(AF_INET, &((const struct sockaddr_in *)info->src_addr)->sin_addr, node, (socklen_t)size);
    if (info->addr_format == LF_SOCKADDR_IN6)
        return address &&
               inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)info->src_addr)->sin6_addr, node, (socklen_t)size);
    return false;
}

/* Format the address of an info's endpoints in digits. */
static int find_own_node(const struct ofp_info *info, char *node, size_t size, char *text, size_t text_size)
{
    const struct bridge_library *library = bridge_library_get(text, text_size);
    struct lf_info *found;
    int error;

    if (!library)
        return -ENOENT;
    error = bridge_info_find(library, info, NULL, NULL, 0, &found);
    if (error)
        return error;
    if (!bridge_node_format_own(found, node, size))
        error = -EOPNOTSUPP;
    library->freeinfo(found);
    return error;
}

static bool is_among(const struct addrinfo *list, const char *node)
{
    char digits[INET6_ADDRSTRLEN];

    for (; list; list = list->ai_next)
        if (getnameinfo(list->ai_addr, list->ai_addrlen, digits, sizeof(digits), NULL, 0, NI_NUMERICHOST) == 0 &&
            strcmp(digits, node) == 0)
            return true;
    return false;
}

static bool is_own_name(const char *node)
{
    char host[256] = "";

    return strcasecmp(node, "localhost") == 0 ||
           (gethostname(host, sizeof(host) - 1) == 0 && strcasecmp(node, host) == 0);
}

int bridge_node_check(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char own[INET6_ADDRSTRLEN];
    struct addrinfo *found;
    int error;

    /* Within one host every endpoint is at this node. */
    if (info->address_format == OFP_ADDRESS_OPAQUE && !(info->caps & OFP_CAP_REMOTE_COMM) && is_own_name(node))
        return 0;
    error = find_own_node(info, own, sizeof(own), text, text_size);
    if (error) {
        if (!text[0])
            snprintf(text, text_size, "%s does not tell at which address of this host its endpoints are, so not %s",
                     info->provider, node);
        return error;
    }
    error = getaddrinfo(node, NULL, &hints, &found);
    if (error) {
        snprintf(text, text_size, "%s: %s", node, error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
        return -EHOSTUNREACH;
    }
    if (!is_among(found, own)) {
        snprintf(text, text_size, "%s is not an address of %s", node, info->domain);
        error = -EHOSTUNREACH;
    }
    freeaddrinfo(found);
    return error;
}

int bridge_address_check_family(const struct ofp_info *info, const void *address, size_t length, char *text,
                                size_t text_size)
{
    sa_family_t wanted = info->address_format == OFP_ADDRESS_IPV6 ? AF_INET6 : AF_INET;

    if (info->address_format == OFP_ADDRESS_OPAQUE || bridge_address_find_family(info, address, length) == wanted)
        return 0;
    snprintf(text, text_size, "the address is of another family than those of the domain %s, which is IPv%d",
             info->domain, wanted == AF_INET6 ? 6 : 4);
    return -EHOSTUNREACH;
}
