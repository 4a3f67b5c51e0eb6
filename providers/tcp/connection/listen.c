/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listening socket: binding, accepting, and pausing after a shortage of descriptors. An accepted connection is in
 * state ACCEPTED and in endpoint->unproven until accept.c or passive.c has its request. A timer ends it before that if
 * the peer is too slow.
 */
#include "connection/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/auth.h"
#include "connection/connection.h"
#include "connection/key.h"
#include "ofipy/atomics.h"
#include "address/interface.h"
#include "address/resolve.h"
#include "stream/socket.h"

/* Time without accepting, after a shortage of descriptors. */
#define ACCEPT_PAUSE (50 * TCP_MILLISECOND)

/* ---------------------------------------------------------------------------------------------------------- binding */

static int bind_port(int fd, union tcp_address *address, uint16_t port)
{
    socklen_t length = (socklen_t)tcp_address_get_length(address);
    int one = 1;

    tcp_address_set_port(address, port);
    if (bind(fd, &address->any, length) == 0)
        return 0;
    /*
     * Set SO_REUSEADDR only after a failure: it lets the port be bound despite old connections, but also lets a later
     * listener share the address.
     */
    if (errno != EADDRINUSE || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
        return -errno;
    return bind(fd, &address->any, length) ? -errno : 0;
}

/*
 * Bind a free port of the range. Start at a random one, so that programs that start together do not all try the same
 * ports.
 */
static int bind_port_in_range(int fd, union tcp_address *address, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1, first = 0;
    int error = -EADDRINUSE;

    if (getrandom(&first, sizeof(first), 0) != sizeof(first))
        first = 0;
    for (uint64_t i = 0; i < span && error == -EADDRINUSE; i++)
        error = bind_port(fd, address, (uint16_t)(low + (first % span + i) % span));
    return error;
}

static int bind_any_port(int fd, union tcp_address *address, char *text, size_t text_size)
{
    uint64_t low = (uint64_t)tcp_core->param_int("TCP_PORT_LOW"), high = (uint64_t)tcp_core->param_int("TCP_PORT_HIGH");
    int error;

    if (!low && !high)
        return bind_port(fd, address, 0);
    if (!low || low > high) {
        snprintf(text, text_size, "OFIPY_TCP_PORT_LOW=%llu, OFIPY_TCP_PORT_HIGH=%llu: no range of ports",
                 (unsigned long long)low, (unsigned long long)high);
        return -EINVAL;
    }
    error = bind_port_in_range(fd, address, low, high);
    if (error)
        snprintf(text, text_size, "no port from %llu to %llu is free: %s", (unsigned long long)low,
                 (unsigned long long)high, strerror(-error));
    return error;
}

static int bind_address(union tcp_address *own, int fd, uint16_t port, char *text, size_t text_size)
{
    socklen_t length = sizeof(*own);
    char address[TCP_ADDRESS_TEXT];
    int error;

    error = port ? bind_port(fd, own, port) : bind_any_port(fd, own, text, text_size);
    if (!error && getsockname(fd, &own->any, &length) != 0)
        error = -errno;
    if (error && !text[0]) {
        tcp_address_describe(own, address);
        snprintf(text, text_size, "cannot bind to %s: %s", address, strerror(-error));
    }
    tcp_address_clear_unused(own);
    return error;
}

/* Replace the wildcard address by the first address of this host, since peers cannot connect to a wildcard. */
static int choose_address_of_any(union tcp_address *own)
{
    union tcp_address addresses[TCP_INTERFACES_MAX];
    uint16_t port = tcp_address_get_port(own);
    int count = tcp_addresses_of(own, addresses);

    if (count <= 0)
        return count ? count : -EADDRNOTAVAIL;
    *own = addresses[0];
    tcp_address_set_port(own, port);
    return 0;
}

static void resume_accepting(struct ofp_timer *timer, uint64_t now)
{
    struct tcp_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct tcp_endpoint, listen_timer);
    struct epoll_event event = {.events = EPOLLIN};

    (void)now;
    epoll_ctl(endpoint->poller->epoll_fd, EPOLL_CTL_MOD, endpoint->listener, &event);
}

int tcp_listener_bind(struct tcp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    bool only_reserves_port = endpoint->base && endpoint->base->connects_only;
    int off = 0, error;
    uint16_t port;

    error = tcp_service_parse(service, &port, text, text_size);
    if (error)
        return error;
    endpoint->anywhere = tcp_address_is_any(&endpoint->address) ? endpoint->address.any.sa_family : 0;
    endpoint->listener =
        tcp_descriptor_register(socket(endpoint->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (endpoint->listener < 0)
        return -errno;
    if (endpoint->anywhere == AF_INET6)
        setsockopt(endpoint->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    /* Connections inherit it, so that the first packet of each has it already. */
    tcp_socket_set_traffic_class(endpoint, endpoint->listener);
    error = bind_address(&endpoint->address, endpoint->listener, port, text, text_size);
    /* Peers do not connect to this endpoint, so any port will do. */
    if (error == -EADDRINUSE && port && only_reserves_port)
        error = bind_address(&endpoint->address, endpoint->listener, 0, text, text_size);
    if (!error && endpoint->anywhere)
        error = choose_address_of_any(&endpoint->address);
    if (error) {
        tcp_descriptor_close(endpoint->listener);
        endpoint->listener = -1;
    }
    return error;
}

/* Warn once per process. */
static void warn_of_open_port(const struct tcp_endpoint *endpoint)
{
    static _Atomic bool warned;
    char text[TCP_ADDRESS_TEXT];

    if (tcp_domain_has_key(endpoint->domain) || (tcp_address_is_loopback(&endpoint->address) && !endpoint->anywhere) ||
        ofp_exchange(&warned, true))
        return;
    tcp_address_describe(&endpoint->address, text);
    tcp_core->log(OFP_LOG_WARNING, TCP_NAME,
                  "listening on %s%s for whoever reaches it: without a key (OFIPY_AUTH_KEY_FILE) peers prove nothing",
                  text, endpoint->anywhere ? " and every other address of this host" : "");
}

int tcp_listener_start(struct tcp_endpoint *endpoint)
{
    struct epoll_event event = {.events = EPOLLIN};

    endpoint->listen_timer.expired = resume_accepting;
    endpoint->poller->listening = endpoint;
    /* Two sockets may have been bound to one address; listen() fails for the second. */
    if (listen(endpoint->listener, TCP_BACKLOG) != 0 ||
        epoll_ctl(endpoint->poller->epoll_fd, EPOLL_CTL_ADD, endpoint->listener, &event) != 0)
        return -errno;
    warn_of_open_port(endpoint);
    return 0;
}

void tcp_listener_close(struct tcp_endpoint *endpoint)
{
    tcp_core->timer_stop(endpoint->domain->base, &endpoint->listen_timer);
    if (endpoint->listener >= 0) {
        epoll_ctl(endpoint->poller->epoll_fd, EPOLL_CTL_DEL, endpoint->listener, NULL);
        tcp_descriptor_close(endpoint->listener);
    }
    endpoint->listener = -1;
}

/* --------------------------------------------------------------------------------------------------------- accepting */

static void stop_accepting(struct tcp_endpoint *endpoint, int error)
{
    struct epoll_event event = {.events = 0};
    char why[OFP_TEXT_MAX];

    tcp_error_describe(error, why, sizeof(why));
    if (!endpoint->warned_accept)
        tcp_core->log(OFP_LOG_WARNING, TCP_NAME,
                      "endpoint %u cannot accept connections, and tries again until it can: %s",
                      tcp_endpoint_id_of(endpoint), why);
    endpoint->warned_accept = true;
    epoll_ctl(endpoint->poller->epoll_fd, EPOLL_CTL_MOD, endpoint->listener, &event);
    endpoint->listen_timer.deadline = tcp_core->now() + ACCEPT_PAUSE;
    tcp_core->timer_start(endpoint->domain->base, &endpoint->listen_timer);
}

static void request_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    tcp_connection_discard(OFP_CONTAINER_OF(timer, struct tcp_meeting, timer)->connection);
}

static void accept_socket(struct tcp_endpoint *endpoint, int fd, const union tcp_address *peer)
{
    struct tcp_connection *connection;

    if (endpoint->unproven_count >= TCP_UNPROVEN_MAX)
        tcp_connection_discard(OFP_CONTAINER_OF(endpoint->unproven.next, struct tcp_connection, unproven));
    tcp_socket_set_options(endpoint, fd);
    tcp_socket_set_congestion_control(endpoint, fd, peer, (socklen_t)tcp_address_get_length(peer));
    connection = tcp_connection_create(endpoint, fd, TCP_ACCEPTED);
    if (!connection)
        return;
    ofp_list_append(&endpoint->unproven, &connection->unproven);
    endpoint->unproven_count++;
    OFP_CHECK(endpoint->unproven_count <= TCP_UNPROVEN_MAX);
    connection->meeting->source = tcp_source_find(peer);
    connection->meeting->timer.deadline = tcp_core->now() + endpoint->domain->connect_ns;
    connection->meeting->timer.expired = request_timer_expired;
    tcp_core->timer_start(endpoint->domain->base, &connection->meeting->timer);
    if (tcp_key_choose(connection) != 0 || tcp_connection_watch(connection) != 0)
        tcp_connection_discard(connection);
}

void tcp_listener_accept(struct tcp_endpoint *endpoint)
{
    int most = endpoint->domain->encryption == TCP_ENCRYPT_NONE ? TCP_ACCEPT_BATCH : TCP_ACCEPT_BATCH_ENCRYPTED;

    for (int i = 0; i < most && endpoint->listener >= 0; i++) {
        union tcp_address peer = {0};
        socklen_t length = sizeof(peer);
        int fd = tcp_descriptor_register(accept4(endpoint->listener, &peer.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));

        tcp_address_clear_unused(&peer);
        if (fd >= 0) {
            accept_socket(endpoint, fd, &peer);
            continue;
        }
        /* Other errors concern the one connection only. */
        if (ofpi_meet_is_shortage(errno))
            stop_accepting(endpoint, errno);
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}
