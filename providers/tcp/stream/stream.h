/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A byte stream between the codec and a socket: plain (stream.c) or encrypted (tls.c). The layers above do not depend on
 * what happens to the bytes.
 */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tcp_stream;

struct tcp_stream_ops {
    /*
     * As readv(2) and sendmsg(2), but never blocking. They return the bytes moved, 0 at the end of the stream, or a
     * negative errno.
     */
    ssize_t (*readv)(struct tcp_stream *stream, const struct iovec *iov, int count);
    ssize_t (*writev)(struct tcp_stream *stream, const struct iovec *iov, int count);
    /* Write what the stream stores, `unsent`. 0: nothing is left; or a negative errno. NULL: it never stores anything. */
    int (*flush)(struct tcp_stream *stream);
    /* Number of written bytes that the peer's kernel has not acknowledged. */
    size_t (*pending)(const struct tcp_stream *stream);
    /* End the output. Bytes written before still arrive. */
    void (*shutdown)(struct tcp_stream *stream);
    void (*close)(struct tcp_stream *stream);
};

struct tcp_stream {
    const struct tcp_stream_ops *ops;
    int fd;      /* -1: closed */
    bool unsent; /* written bytes are stored here, since the socket has not accepted them; `flush` writes them */
    bool ended;  /* behind the bytes of the last read the stream has ended or failed, as the next read says */
};

extern const struct tcp_stream_ops tcp_plain_stream;

#endif
