/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream over a plain socket. */
#include "stream/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream/descriptor.h"

static ssize_t read_plain_stream(struct tcp_stream *stream, const struct iovec *iov, int count)
{
    ssize_t result;

    do
        result =
            count == 1 ? recv(stream->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT) : readv(stream->fd, iov, count);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static ssize_t write_plain_stream(struct tcp_stream *stream, const struct iovec *iov, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)count};
    ssize_t result;

    do
        result = count == 1 ? send(stream->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static size_t count_unacked_bytes(const struct tcp_stream *stream)
{
    int count = 0;

    return ioctl(stream->fd, SIOCOUTQ, &count) == 0 && count > 0 ? (size_t)count : 0;
}

static void shut_down_plain_stream(struct tcp_stream *stream) { shutdown(stream->fd, SHUT_WR); }

static void close_plain_stream(struct tcp_stream *stream)
{
    tcp_descriptor_close(stream->fd);
    stream->fd = -1;
}

const struct tcp_stream_ops tcp_plain_stream = {
    .readv = read_plain_stream,
    .writev = write_plain_stream,
    .pending = count_unacked_bytes,
    .shutdown = shut_down_plain_stream,
    .close = close_plain_stream,
};
