/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that is a bare socket, against an endpoint over TCP that is driven by the same thread. */
#ifndef TEST_TCP_FIXTURE_H
#define TEST_TCP_FIXTURE_H

#include "core_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "objects.h"

#define PATIENCE 5000000000ull
#define RAW_PORT 1234
#define RAW_PID 77

static inline void tcp_side_open(struct side *side)
{
    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    side_open(side, false, OFP_PROGRESS_MANUAL, 0);
}

static inline union tcp_address address_of(struct side *side)
{
    union tcp_address address;
    size_t length = sizeof(address);

    memset(&address, 0, sizeof(address));
    assert_int_equal(ofp_endpoint_address(side->endpoint, &address, &length), 0);
    return address;
}

static inline int raw_connect(struct side *side)
{
    union tcp_address address = address_of(side);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    assert_int_equal(connect(fd, &address.any, sizeof(address.v4)), 0);
    return fd;
}

static inline void raw_write(int fd, const void *bytes, size_t length)
{
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Read exactly so much, driving the endpoint. False: the connection ended before. */
static inline bool raw_read(struct side *side, int fd, void *bytes, size_t length)
{
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    size_t have = 0;

    while (have < length) {
        ssize_t part = recv(fd, (char *)bytes + have, length - have, MSG_DONTWAIT);

        if (part == 0 || (part < 0 && errno != EAGAIN))
            return false;
        have += part > 0 ? (size_t)part : 0;
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    return true;
}

/* The endpoint hangs up, whatever it says before. */
static inline void raw_is_dropped(struct side *side, int fd)
{
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    char ignored[4096];

    for (;;) {
        ssize_t part = recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT);

        if (part == 0 || (part < 0 && errno != EAGAIN))
            break;
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    close(fd);
}

static inline void raw_request(int fd, struct tcp_control control, const struct tcp_rdm *rdm)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE];

    control.private_size = TCP_RDM_SIZE;
    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(rdm, bytes + TCP_CONTROL_SIZE);
    raw_write(fd, bytes, sizeof(bytes));
}

/* A connection that is up, as `port` and `pid`; *control, *rdm: what was answered. */
static inline int raw_meet_as(struct side *side, uint16_t port, uint32_t pid, uint64_t offer,
                              struct tcp_control *control, struct tcp_rdm *rdm)
{
    struct tcp_rdm request = {.version = 1, .port = port, .pid = pid};
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE];
    int fd = raw_connect(side);

    raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ, .magic = offer}, &request);
    assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
    assert_int_equal(tcp_control_decode(bytes, control), 0);
    tcp_rdm_decode(bytes + TCP_CONTROL_SIZE, rdm);
    return fd;
}

static inline int raw_meet(struct side *side)
{
    struct tcp_control control;
    struct tcp_rdm rdm;
    int fd = raw_meet_as(side, RAW_PORT, RAW_PID, 0, &control, &rdm);

    assert_int_equal(control.type, TCP_CONNRESP);
    return fd;
}

static inline int raw_meet_extended(struct side *side)
{
    struct tcp_control control;
    struct tcp_rdm rdm;
    uint8_t hello[TCP_HEADER_BASE + 5 * 8];
    int fd = raw_meet_as(side, RAW_PORT, RAW_PID, TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION, &control, &rdm);

    assert_true(tcp_magic_is_extension(control.magic));
    assert_true(raw_read(side, fd, hello, sizeof(hello)));
    assert_int_equal(hello[1], TCP_HELLO);
    return fd;
}

static inline void raw_send(int fd, struct tcp_header header, const void *payload, size_t length)
{
    uint8_t bytes[TCP_HEADER_MAX];

    raw_write(fd, bytes, tcp_header_encode(&header, 0, false, bytes));
    if (length)
        raw_write(fd, payload, length);
}

/* The peer behind a raw connection, in the endpoint's vector. */
static inline uint32_t raw_peer(struct side *side)
{
    union tcp_address address;
    uint32_t index;

    memset(&address, 0, sizeof(address));
    address.v4.sin_family = AF_INET;
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.v4.sin_port = htons(RAW_PORT);
    assert_int_equal(ofp_av_insert(side->av, &address, sizeof(address.v4), &index), 0);
    return index;
}

static inline void post(struct side *side, struct ofp_operation op)
{
    assert_int_equal(ofp_post(side->endpoint, &op, 1), 1);
}

/* Everything still works for somebody else. */
static inline void serves(struct side *side)
{
    struct side good;
    uint8_t out = 42, in = 0;

    tcp_side_open(&good);
    sides_meet(&good, side);
    post(side, tagged(OFP_TRECV, side->peer, 4242, &in, 1, 1));
    post(&good, tagged(OFP_TSEND, good.peer, 4242, &out, 1, 1));
    for (;;) {
        struct ofp_completion row = next_completion(side, &good);

        /* What the hostile one had begun may have ended before. */
        if (row.tag == 4242)
            break;
    }
    assert_int_equal(in, 42);
    side_close(&good);
}

#endif
