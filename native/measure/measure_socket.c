/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a plain stream socket for comparison: no messages, no matching, no completions. The descriptor is
 * connected and non-blocking, and every wait spins on system calls.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "ofipy/measure.h"

static bool shall_retry(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

static int send_bytes(int fd, const char *from, uint64_t length)
{
    while (length) {
        ssize_t sent = send(fd, from, length, MSG_NOSIGNAL);

        if (sent < 0 && !shall_retry(sent))
            return -errno;
        if (sent > 0) {
            from += sent;
            length -= (uint64_t)sent;
        }
    }
    return 0;
}

/* The end of the stream is an error. */
static int receive_bytes(int fd, char *into, uint64_t length)
{
    while (length) {
        ssize_t received = recv(fd, into, length, 0);

        if (received == 0)
            return -ECONNRESET;
        if (received < 0 && !shall_retry(received))
            return -errno;
        if (received > 0) {
            into += received;
            length -= (uint64_t)received;
        }
    }
    return 0;
}

static int run_socket_round_trip(const struct ofp_measure_socket_attr *attr)
{
    int result = attr->first ? send_bytes(attr->fd, attr->send_buffer, attr->length) : 0;

    if (!result)
        result = receive_bytes(attr->fd, attr->receive_buffer, attr->length);
    if (!result && !attr->first)
        result = send_bytes(attr->fd, attr->send_buffer, attr->length);
    return result;
}

int64_t ofp_measure_socket_pingpong(const struct ofp_measure_socket_attr *attr)
{
    uint64_t started = ofpi_clock_read(), last = started;
    int result = attr->length ? 0 : -EINVAL;

    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = run_socket_round_trip(attr);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_clock_read();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}

int64_t ofp_measure_socket_stream(const struct ofp_measure_socket_attr *attr)
{
    uint64_t started = ofpi_clock_read();
    char acknowledgement = 0;
    int result = attr->length ? 0 : -EINVAL;

    for (uint64_t i = 0; i < attr->iterations && !result; i++)
        result = attr->first ? send_bytes(attr->fd, attr->send_buffer, attr->length)
                             : receive_bytes(attr->fd, attr->receive_buffer, attr->length);
    if (!result)
        result = attr->first ? receive_bytes(attr->fd, &acknowledgement, 1) : send_bytes(attr->fd, &acknowledgement, 1);
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
