/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the sockets that carry connections. */
#include "stream/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Questions to a peer that says nothing: after how many seconds, and how far apart at most. */
#define KEEPALIVE_IDLE 10
#define KEEPALIVE_INTERVAL 5

/* Every kernel has it, and it does not pace. */
#define WITHIN_HOST "reno"

/* So early that the user timeout, which says when a peer that does not answer is lost, is over while they are asked. */
static int keepalive_seconds(const struct tcp_endpoint *endpoint, int most, int share)
{
    int seconds = (int)(endpoint->domain->user_timeout_ms / 1000) / share;

    if (seconds > most)
        return most;
    return seconds ? seconds : 1;
}

static bool is_within_host(const union tcp_address *own, const union tcp_address *peer)
{
    size_t length, peer_length;
    const uint8_t *ip = tcp_address_ip(own, &length), *peer_ip = tcp_address_ip(peer, &peer_length);

    return tcp_address_is_loopback(own) || tcp_address_is_loopback(peer) ||
           (length == peer_length && memcmp(ip, peer_ip, length) == 0);
}

/* A congestion control that paces, as BBR does, holds back what a path within a host, which nobody else uses, would take. */
static void set_congestion_control(const struct tcp_endpoint *endpoint, int fd, const union tcp_address *peer)
{
    const char *name = endpoint->domain->congestion_control;

    if (!name[0] && is_within_host(&endpoint->address, peer))
        name = WITHIN_HOST;
    if (name[0])
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

void tcp_socket_options(const struct tcp_endpoint *endpoint, int fd, const void *address, socklen_t length)
{
    union tcp_address peer = {0};
    int one = 1, idle = keepalive_seconds(endpoint, KEEPALIVE_IDLE, 3);
    int interval = keepalive_seconds(endpoint, KEEPALIVE_INTERVAL, 6);
    unsigned timeout = endpoint->domain->user_timeout_ms;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* A host that is gone says nothing: unacknowledged data and unanswered questions tell. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    memcpy(&peer, address, length);
    set_congestion_control(endpoint, fd, &peer);
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