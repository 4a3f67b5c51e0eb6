/* SPDX-License-Identifier: BSD-3-Clause */
/* A bare socket that asks a listener over TCP for a connection; the same thread drives both. */
#ifndef TEST_TCP_LISTENER_H
#define TEST_TCP_LISTENER_H

#include "connection_fixture.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "objects.h"

static inline int raw_connect(struct ofp_passive *passive)
{
    union tcp_address address;
    size_t length = sizeof(address);
    int fd;

    assert_int_equal(ofp_passive_address(passive, &address, &length), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &address.any, (socklen_t)length), 0);
    return fd;
}

static inline void raw_request(int fd, const char *data)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = (uint16_t)strlen(data)};

    tcp_control_encode(&control, bytes);
    memcpy(bytes + TCP_CONTROL_SIZE, data, strlen(data));
    assert_int_equal(send(fd, bytes, TCP_CONTROL_SIZE + strlen(data), MSG_NOSIGNAL), TCP_CONTROL_SIZE + strlen(data));
}

static inline bool raw_read(struct node *node, int fd, void *bytes, size_t length)
{
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;
    size_t have = 0;

    while (have < length) {
        ssize_t part = recv(fd, (char *)bytes + have, length - have, MSG_DONTWAIT);

        if (part == 0 || (part < 0 && errno != EAGAIN))
            return false;
        have += part > 0 ? (size_t)part : 0;
        ofp_domain_progress(node->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    return true;
}

#endif
