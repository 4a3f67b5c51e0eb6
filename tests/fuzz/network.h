/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network inside this process, and a clock that a target turns: sockets of the provider are ends of socket pairs, whose other
 * ends the target holds. The linker puts these functions in place of libc's (--wrap, see `run`), so the provider is the one
 * that is shipped, and the same input always does the same.
 */
#ifndef FUZZ_NETWORK_H
#define FUZZ_NETWORK_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "input.h"

#define NETWORK_SOCKETS 1024
#define NETWORK_QUEUE 16
#define NETWORK_PORT 7471 /* where the endpoint listens */

enum network_connect { NETWORK_REFUSES, NETWORK_REFUSES_LATER, NETWORK_CONNECTS };

/* One end that the provider has. */
struct network_socket {
    bool used, connected;
    int far; /* -1: the target has taken it */
    int error;
    uint16_t port; /* of whoever is at the other end */
};

static struct {
    struct network_socket sockets[NETWORK_SOCKETS];
    int listener; /* -1: none */
    int arrivals[NETWORK_QUEUE], departures[NETWORK_QUEUE];
    int arrival_count, departure_count;
    enum network_connect connect;
    int buffer; /* bytes of a socket's send buffer; 0: the system's choice */
    uint64_t now, random;
} network;

static inline void network_begin(void)
{
    memset(&network, 0, sizeof(network));
    network.listener = -1;
    network.now = 1000000000;
}

static inline struct network_socket *network_find(int fd)
{
    return fd >= 0 && fd < NETWORK_SOCKETS && network.sockets[fd].used ? &network.sockets[fd] : NULL;
}

static inline int network_pair(uint16_t port)
{
    int pair[2];

    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0 && pair[0] < NETWORK_SOCKETS);
    if (network.buffer)
        setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &network.buffer, sizeof(network.buffer));
    network.sockets[pair[0]] = (struct network_socket){.used = true, .far = pair[1], .port = port};
    return pair[0];
}

static inline int network_take_far(int fd)
{
    int far = network.sockets[fd].far;

    network.sockets[fd].far = -1;
    return far;
}

/* Somebody connects to the listener, from a port. -1: nobody listens. */
static inline int network_arrive(uint16_t port)
{
    int fd;

    if (network.listener < 0 || network.arrival_count == NETWORK_QUEUE)
        return -1;
    fd = network_pair(port);
    network.sockets[fd].connected = true;
    network.arrivals[network.arrival_count++] = fd;
    check(write(network.sockets[network.listener].far, "", 1) == 1);
    return network_take_far(fd);
}

/* The provider connects to its own listener: both ends are its own. */
static inline bool network_arrive_self(struct network_socket *near)
{
    if (network.listener < 0 || network.arrival_count == NETWORK_QUEUE)
        return false;
    check(near->far < NETWORK_SOCKETS);
    network.sockets[near->far] =
        (struct network_socket){.used = true, .connected = true, .far = -1, .port = NETWORK_PORT};
    network.arrivals[network.arrival_count++] = near->far;
    near->far = -1;
    near->connected = true;
    near->error = 0;
    errno = EINPROGRESS;
    check(write(network.sockets[network.listener].far, "", 1) == 1);
    return true;
}

/* The provider has connected to somebody. -1: it has not. */
static inline int network_depart(void)
{
    int fd;

    if (!network.departure_count)
        return -1;
    fd = network.departures[--network.departure_count];
    return network_find(fd) ? network_take_far(fd) : -1;
}

/* The provider has closed all that it had. */
static inline void network_end(void)
{
    for (int i = 0; i < network.arrival_count; i++)
        close(network.arrivals[i]);
    for (int i = 0; i < NETWORK_SOCKETS; i++)
        check(!network.sockets[i].used);
}

static inline void network_address(uint16_t port, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_in own = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};

    memcpy(address, &own, *length < sizeof(own) ? *length : sizeof(own));
    *length = sizeof(own);
}

/* ------------------------------------------------------------------------------------------------ in place of libc's */

int __real_socket(int domain, int type, int protocol);
int __real_close(int fd);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __real_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __real_poll(struct pollfd *entries, nfds_t count, int timeout);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_close(int fd);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_poll(struct pollfd *entries, nfds_t count, int timeout);
ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags);
uint64_t __wrap_ofpi_clock_read(void);

int __wrap_socket(int domain, int type, int protocol)
{
    if ((domain != AF_INET && domain != AF_INET6) || !(type & SOCK_STREAM))
        return __real_socket(domain, type, protocol);
    return network_pair(0);
}

int __wrap_close(int fd)
{
    struct network_socket *near = network_find(fd);

    if (near) {
        if (near->far >= 0)
            __real_close(near->far);
        near->used = false;
        if (fd == network.listener)
            network.listener = -1;
    }
    return __real_close(fd);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    return network_find(fd) ? 0 : __real_bind(fd, address, length);
}

int __wrap_listen(int fd, int backlog)
{
    (void)backlog;
    network.listener = fd;
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    char byte;
    int result = network.arrivals[0];

    (void)address;
    (void)length;
    (void)flags;
    if (!network.arrival_count) {
        errno = EAGAIN;
        return -1;
    }
    check(read(fd, &byte, 1) == 1);
    memmove(network.arrivals, network.arrivals + 1, (size_t)--network.arrival_count * sizeof(int));
    return result;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct network_socket *near = network_find(fd);

    if (!near)
        return __real_connect(fd, address, length);
    errno = network.connect == NETWORK_REFUSES ? ECONNREFUSED : EINPROGRESS;
    near->error = network.connect == NETWORK_REFUSES_LATER ? ECONNREFUSED : 0;
    near->port = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    if (near->port == NETWORK_PORT && network_arrive_self(near))
        return -1;
    if (network.connect == NETWORK_CONNECTS && network.departure_count < NETWORK_QUEUE) {
        near->connected = true;
        network.departures[network.departure_count++] = fd;
    }
    return -1;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    if (!network_find(fd))
        return __real_getsockname(fd, address, length);
    network_address(NETWORK_PORT, address, length);
    return 0;
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    const struct network_socket *near = network_find(fd);

    if (!near || !near->connected) {
        errno = ENOTCONN;
        return -1;
    }
    network_address(near->port, address, length);
    return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    struct network_socket *near = network_find(fd);

    if (!near || level != SOL_SOCKET || name != SO_ERROR)
        return __real_getsockopt(fd, level, name, value, length);
    memcpy(value, &near->error, sizeof(near->error));
    return 0;
}

/* Nobody waits here. */
int __wrap_poll(struct pollfd *entries, nfds_t count, int timeout)
{
    (void)timeout;
    return __real_poll(entries, count, 0);
}

ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < length; i++) {
        network.random = network.random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[i] = (uint8_t)(network.random >> 56);
    }
    return (ssize_t)length;
}

uint64_t __wrap_ofpi_clock_read(void) { return network.now += 100; }

#endif
