/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the sockets of connections. */
#include "stream/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Keep-alive: longest idle time before the first probe, and longest time between probes, in seconds. */
#define KEEPALIVE_IDLE 10
#define KEEPALIVE_INTERVAL 5

/* Every kernel has this congestion control, and it does not pace. */
#define WITHIN_HOST "reno"

/* A share of the user timeout, so that several probes are sent before the timeout marks the peer lost. */
static int compute_keepalive(const struct tcp_endpoint *endpoint, int most, int share)
{
    int seconds = (int)(endpoint->domain->user_timeout_ms / 1000) / share;

    if (seconds > most)
        return most;
    return seconds ? seconds : 1;
}

static bool is_within_host(const union tcp_address *own, const union tcp_address *peer)
{
    size_t length, peer_length;
    const uint8_t *ip = tcp_address_get_ip(own, &length), *peer_ip = tcp_address_get_ip(peer, &peer_length);

    return tcp_address_is_loopback(own) || tcp_address_is_loopback(peer) ||
           (length == peer_length && memcmp(ip, peer_ip, length) == 0);
}

static bool read_address(int fd, int (*end)(int, struct sockaddr *, socklen_t *), union tcp_address *address)
{
    socklen_t length = sizeof(*address);

    memset(address, 0, sizeof(*address));
    if (fd < 0 || end(fd, &address->any, &length) != 0)
        return false;
    tcp_address_clear_unused(address);
    return true;
}

bool tcp_socket_get_address(int fd, union tcp_address *address) { return read_address(fd, getsockname, address); }

bool tcp_socket_get_peer_address(int fd, union tcp_address *address) { return read_address(fd, getpeername, address); }

int tcp_socket_check_connect(int fd)
{
    union tcp_address ignored;
    socklen_t length = sizeof(int);
    int error = 0;

    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error || tcp_socket_get_peer_address(fd, &ignored))
        return error;
    return errno == ENOTCONN ? EAGAIN : errno;
}

/* Pacing, as BBR does it, only delays data between processes of one host. There the path is not shared. */
void tcp_socket_set_congestion_control(const struct tcp_endpoint *endpoint, int fd, const void *address,
                                       socklen_t length)
{
    const char *name = endpoint->domain->congestion_control;
    union tcp_address own = endpoint->address, peer = {0};
    socklen_t own_length = sizeof(own);

    memcpy(&peer, address, length);
    if (endpoint->anywhere && getsockname(fd, &own.any, &own_length) == 0)
        tcp_address_clear_unused(&own);
    if (!name[0] && is_within_host(&own, &peer))
        name = WITHIN_HOST;
    if (name[0])
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

/* The kernel keeps the two bits of ECN to itself. */
void tcp_socket_set_traffic_class(const struct tcp_endpoint *endpoint, int fd)
{
    int traffic_class = endpoint->base ? (int)endpoint->base->traffic_class : 0;

    if (!traffic_class)
        return;
    traffic_class &= ~OFP_TRAFFIC_CLASS;
    setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof(traffic_class));
    if (endpoint->address.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof(traffic_class));
}

void tcp_socket_set_options(const struct tcp_endpoint *endpoint, int fd)
{
    int one = 1, idle = compute_keepalive(endpoint, KEEPALIVE_IDLE, 3);
    int interval = compute_keepalive(endpoint, KEEPALIVE_INTERVAL, 6);
    unsigned timeout = endpoint->domain->user_timeout_ms;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* A dead host sends nothing. Unacknowledged data and keep-alive probes reveal it. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    tcp_socket_set_traffic_class(endpoint, fd);
}

/* Connect from the endpoint's own address, since peers know the endpoint by it. */
static int bind_own_address(const struct tcp_endpoint *endpoint, int fd)
{
    union tcp_address own = endpoint->address;
    int one = 1;

    tcp_address_set_port(&own, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    return bind(fd, &own.any, (socklen_t)tcp_address_get_length(&own));
}

int tcp_socket_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *result)
{
    sa_family_t family;
    int fd, error;

    /* The address of a peer of link lies where it is in link's own address, at any alignment. */
    memcpy(&family, (const char *)address + offsetof(struct sockaddr, sa_family), sizeof(family));
    fd = tcp_descriptor_register(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -errno;
    tcp_socket_set_options(endpoint, fd);
    if ((!endpoint->anywhere && bind_own_address(endpoint, fd) != 0) ||
        (connect(fd, address, length) != 0 && errno != EINPROGRESS)) {
        error = -errno;
        tcp_descriptor_close(fd);
        return error;
    }
    tcp_socket_set_congestion_control(endpoint, fd, address, length);
    *result = fd;
    return 0;
}

int tcp_congestion_control_read(struct tcp_domain *domain, char *text, size_t text_size)
{
    const char *name = tcp_core->param_string("TCP_CONGESTION_CONTROL");
    int fd, error = 0;

    if (!name || !name[0])
        return 0;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (strlen(name) >= sizeof(domain->congestion_control) ||
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
        error = -EINVAL;
    close(fd);
    if (error)
        snprintf(text, text_size,
                 "OFIPY_TCP_CONGESTION_CONTROL=%s: the kernel does not let this process use it; "
                 "sysctl net.ipv4.tcp_allowed_congestion_control names those that it does",
                 name);
    else
        strcpy(domain->congestion_control, name);
    return error;
}