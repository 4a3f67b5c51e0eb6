/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/core.h"

int shm_address_build(struct shm_address *address, uint64_t host, const char *service, char *text, size_t text_size)
{
    size_t length = service ? strlen(service) : 0;

    if (length == 0 || length >= SHM_NAME_SIZE) {
        snprintf(text, text_size, "a service of shm is a port number or a name of 1 to %d bytes", SHM_NAME_SIZE - 1);
        return -EINVAL;
    }
    if (strpbrk(service, "/: \t\n")) {
        snprintf(text, text_size, "service %s: a name may not hold slashes, colons or spaces", service);
        return -EINVAL;
    }
    memset(address, 0, sizeof(*address));
    address->magic = SHM_ADDRESS_MAGIC;
    address->version = SHM_ADDRESS_VERSION;
    address->host = host;
    address->uid = getuid();
    memcpy(address->name, service, length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ resolution */

/* An address is local if a socket can be bound to it, in this network namespace. */
static bool can_be_bound(const struct addrinfo *entry)
{
    int fd = socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool bound;

    if (fd < 0)
        return false;
    bound = bind(fd, entry->ai_addr, entry->ai_addrlen) == 0;
    close(fd);
    return bound;
}

static bool is_own_name(const char *node)
{
    char name[256] = "";
    size_t label;

    if (gethostname(name, sizeof(name) - 1) != 0)
        return false;
    if (strcasecmp(node, name) == 0)
        return true;
    label = strcspn(name, ".");
    return strlen(node) == label && strncasecmp(node, name, label) == 0;
}

int shm_address_check_node(const char *node, char *text, size_t text_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL, *entry;
    int result;

    if (!node || !node[0] || strcasecmp(node, "localhost") == 0 || is_own_name(node))
        return 0;
    result = getaddrinfo(node, NULL, &hints, &list);
    if (result != 0) {
        snprintf(text, text_size, "cannot resolve host %s: %s", node, gai_strerror(result));
        return -EHOSTUNREACH;
    }
    for (entry = list; entry && !can_be_bound(entry); entry = entry->ai_next)
        ;
    freeaddrinfo(list);
    if (entry)
        return 0;
    snprintf(text, text_size,
             "%s is not this host, and shm reaches only processes of this one: use another provider, "
             "for example tcp",
             node);
    return -EHOSTUNREACH;
}

int shm_address_resolve(const char *node, const char *service, void *address, size_t *length, char *text,
                        size_t text_size)
{
    struct shm_address built;
    uint64_t host;
    int result = shm_address_check_node(node, text, text_size);

    if (!result)
        result = shm_core->host_id(&host, text, text_size);
    if (!result)
        result = shm_address_build(&built, host, service, text, text_size);
    if (result)
        return result;
    if (*length < sizeof(built))
        return -OFP_ETOOSMALL;
    memcpy(address, &built, sizeof(built));
    *length = sizeof(built);
    return 0;
}

/* --------------------------------------------------------------------------------------------------- other services */

int shm_address_check_host(uint64_t host, const struct shm_address *address, char *text, size_t text_size)
{
    if (address->host == host)
        return 0;
    snprintf(
        text, text_size,
        "the peer %s is on another host, or in another network namespace: shm cannot reach it; use another provider, "
        "for example tcp",
        address->name);
    return -EHOSTUNREACH;
}

int shm_address_check(const void *bytes, size_t length)
{
    struct shm_address address;
    size_t name_length;

    if (length != sizeof(address))
        return -EINVAL;
    memcpy(&address, bytes, sizeof(address));
    name_length = strnlen(address.name, SHM_NAME_SIZE);
    if (address.magic != SHM_ADDRESS_MAGIC || address.version != SHM_ADDRESS_VERSION || address.reserved != 0 ||
        name_length == 0 || name_length == SHM_NAME_SIZE)
        return -EINVAL;
    for (size_t i = 0; i < name_length; i++)
        if ((unsigned char)address.name[i] <= ' ' || strchr("/:", address.name[i]))
            return -EINVAL;
    for (size_t i = name_length; i < SHM_NAME_SIZE; i++)
        if (address.name[i])
            return -EINVAL;
    return 0;
}

int shm_address_format(const void *bytes, size_t length, char *text, size_t text_size)
{
    struct shm_address address;
    char host[256] = "localhost", unknown[OFP_TEXT_MAX];
    uint64_t here;
    int result = shm_address_check(bytes, length);

    if (result)
        return result;
    memcpy(&address, bytes, sizeof(address));
    if (shm_core->host_id(&here, unknown, sizeof(unknown)) != 0 || address.host != here)
        snprintf(host, sizeof(host), "host-%016llx", (unsigned long long)address.host);
    else if (gethostname(host, sizeof(host) - 1) != 0)
        snprintf(host, sizeof(host), "localhost");
    result = snprintf(text, text_size, "%s:%s", host, address.name);
    return (size_t)result < text_size ? 0 : -OFP_ETOOSMALL;
}

/* ----------------------------------------------------------------------------------------------------- other users */

/* Find another user whose socket has this name, in this network namespace. */
static bool find_other_user(const struct shm_address *address, uint32_t *uid)
{
    FILE *sockets = fopen("/proc/thread-self/net/unix", "re");
    char line[512], name[SHM_NAME_SIZE];
    unsigned version;
    bool found = false;

    if (!sockets)
        return false;
    while (!found && fgets(line, sizeof(line), sockets)) {
        const char *path = strchr(line, '@');

        found = path && sscanf(path, "@ofipy-shm/%u/%u/%43s", &version, uid, name) == 3 &&
                version == SHM_ADDRESS_VERSION && *uid != address->uid && strcmp(name, address->name) == 0;
    }
    fclose(sockets);
    return found;
}

void shm_address_describe_absence(const void *bytes, char *text, size_t text_size)
{
    struct shm_address address;
    uint32_t uid;

    memcpy(&address, bytes, sizeof(address));
    if (address.name[0] == SHM_RANDOM_NAME)
        snprintf(text, text_size, "no endpoint listens there");
    else if (find_other_user(&address, &uid))
        snprintf(
            text, text_size,
            "an endpoint of user %u listens there, and shm reaches processes of the same user, here %u; run both as one "
            "user, or use tcp, or link with a key (OFIPY_AUTH_KEY_FILE)",
            uid, address.uid);
    else
        snprintf(text, text_size, "of user %u, in this network namespace, no endpoint listens there", address.uid);
}

socklen_t shm_address_convert(const struct shm_address *address, struct sockaddr_un *socket_address)
{
    int length;

    memset(socket_address, 0, sizeof(*socket_address));
    socket_address->sun_family = AF_UNIX;
    /* The first byte stays zero: the abstract name space, whose names end with the socket. */
    length = snprintf(socket_address->sun_path + 1, sizeof(socket_address->sun_path) - 1, "ofipy-shm/%d/%u/%s",
                      SHM_ADDRESS_VERSION, address->uid, address->name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
