/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of encrypted streams, and a relay between them. The relay passes whole records, and changes, drops, repeats,
 * swaps or cuts one of them.
 */
#ifndef TLS_RELAY_H
#define TLS_RELAY_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "stream/tls_state.h"
#include "stream/tls.h"

#define CAPTURE_MAX (2 << 20)
#define RECORD_MAX 17000
#define LONG (1 << 20)

static const uint8_t key[32] = {1, 2, 3}, other_key[32] = {3, 2, 1};
static const struct tcp_tls_files by_key;
static const char pattern[] = "a text that must not be readable on the way";

/* What the relay does with one record of application data. */
enum deed { PASS, FLIP, DROP, REPEAT, SWAP, CUT, END };

struct pair {
    struct tcp_tls_context *contexts[2]; /* of the connector and of the acceptor */
    struct tcp_stream streams[2];
    int relay[2]; /* the relay's ends: towards the connector and towards the acceptor */
    enum deed deed;
    unsigned number;  /* the record that the deed is done to, counted from the connector's first behind its handshake */
    unsigned records; /* records of the connector that the relay has passed behind its handshake */
    bool armed;       /* the handshake is over: records are counted */
    char *captured;   /* all bytes from the connector */
    size_t captured_length;
    char record[RECORD_MAX]; /* from the connector, as far as it has arrived */
    size_t record_length;
    char held[RECORD_MAX]; /* SWAP: the record that is passed later */
    size_t held_length;
    char *passed; /* to the acceptor, as far as its socket has not accepted it */
    size_t passed_begin, passed_end;
    bool ends; /* behind that the acceptor's input ends */
};

static void start_side(struct tcp_stream *stream, struct tcp_tls_context *context, bool connector, const uint8_t *bytes)
{
    struct ofpi_key own = {.length = 32};
    struct ofpi_keyring *ring;

    memcpy(own.bytes, bytes, own.length);
    ring = ofpi_keyring_create(&own, 1);
    assert_int_equal(tcp_tls_start(stream, context, &(struct tcp_tls_side){.connector = connector, .ring = ring}), 0);
    ofpi_keyring_release(ring);
}

static void open_pair(struct pair *pair, const uint8_t *connector_key, const uint8_t *acceptor_key, int buffer)
{
    const uint8_t *keys[2] = {connector_key, acceptor_key};
    char text[256] = "";

    memset(pair, 0, sizeof(*pair));
    pair->captured = malloc(CAPTURE_MAX);
    pair->passed = malloc(CAPTURE_MAX);
    for (int i = 0; i < 2; i++) {
        int ends[2];

        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), errno);
        if (buffer) {
            setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        }
        pair->streams[i] = (struct tcp_stream){.ops = &tcp_plain_stream, .fd = ends[0]};
        pair->relay[i] = ends[1];
        assert_int_equal(tcp_tls_context_create(&pair->contexts[i], &by_key, text, sizeof(text)), 0);
        start_side(&pair->streams[i], pair->contexts[i], i == 0, keys[i]);
    }
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        if (pair->streams[i].fd >= 0)
            pair->streams[i].ops->close(&pair->streams[i]);
        if (pair->relay[i] >= 0)
            close(pair->relay[i]);
        tcp_tls_context_free(pair->contexts[i]);
    }
    free(pair->captured);
    free(pair->passed);
}

/* --------------------------------------------------------------------------------------------------------- the relay */

static void pass_bytes(struct pair *pair, const char *bytes, size_t length)
{
    assert_true(pair->passed_end + length <= CAPTURE_MAX);
    memcpy(pair->passed + pair->passed_end, bytes, length);
    pair->passed_end += length;
}

static void pass_record(struct pair *pair)
{
    bool chosen = pair->armed && pair->records++ == pair->number;
    enum deed deed = chosen ? pair->deed : PASS;
    size_t length = pair->record_length;

    pair->record_length = 0;
    if (deed == FLIP)
        pair->record[length - 1] ^= 1;
    pair->ends |= deed == CUT || deed == END;
    if (deed == SWAP) {
        memcpy(pair->held, pair->record, length);
        pair->held_length = length;
    }
    if (deed != DROP && deed != SWAP && deed != END)
        pass_bytes(pair, pair->record, deed == CUT ? length / 2 : length);
    if (deed == REPEAT)
        pass_bytes(pair, pair->record, length);
    if (deed != SWAP && pair->held_length) {
        pass_bytes(pair, pair->held, pair->held_length);
        pair->held_length = 0;
    }
}

/* Read up to the end of one record of the connector, and pass it. False: nothing has arrived. */
static bool read_record(struct pair *pair)
{
    const uint8_t *head = (const uint8_t *)pair->record;
    size_t whole = pair->record_length < 5 ? 5 : 5u + ((size_t)head[3] << 8 | head[4]);
    ssize_t result = recv(pair->relay[0], pair->record + pair->record_length, whole - pair->record_length, 0);

    if (result <= 0)
        return false;
    assert_true(pair->captured_length + (size_t)result <= CAPTURE_MAX);
    memcpy(pair->captured + pair->captured_length, pair->record + pair->record_length, (size_t)result);
    pair->captured_length += (size_t)result;
    pair->record_length += (size_t)result;
    if (pair->record_length == whole && whole > 5)
        pass_record(pair);
    return true;
}

/* Write what the acceptor's socket accepts. */
static bool write_passed_bytes(struct pair *pair)
{
    size_t left = pair->passed_end - pair->passed_begin;
    ssize_t result = left ? send(pair->relay[1], pair->passed + pair->passed_begin, left, MSG_NOSIGNAL) : 0;

    if (result > 0)
        pair->passed_begin += (size_t)result;
    if (pair->passed_begin < pair->passed_end)
        return result > 0;
    pair->passed_begin = pair->passed_end = 0;
    if (pair->ends)
        shutdown(pair->relay[1], SHUT_WR);
    return left > 0;
}

/* Pass on what is there: from the connector by records, to the connector as it comes. False: nothing was there. */
static bool run_relay(struct pair *pair)
{
    char bytes[4096];
    ssize_t back = recv(pair->relay[1], bytes, sizeof(bytes), 0);
    bool read = read_record(pair), wrote = write_passed_bytes(pair);

    if (back > 0)
        assert_int_equal(send(pair->relay[0], bytes, (size_t)back, MSG_NOSIGNAL), back);
    return read || wrote || back > 0;
}

/* --------------------------------------------------------------------------------------------------------- the streams */

static ssize_t read_stream(struct pair *pair, int side, void *bytes, size_t length)
{
    struct iovec iov = {bytes, length};

    return pair->streams[side].ops->readv(&pair->streams[side], &iov, 1);
}

static ssize_t write_stream(struct pair *pair, int side, const void *bytes, size_t length)
{
    struct iovec iov = {(void *)(uintptr_t)bytes, length};

    return pair->streams[side].ops->writev(&pair->streams[side], &iov, 1);
}

/* Run both handshakes: an empty write progresses one. 0, or the error of the first side that failed. */
static int run_handshake(struct pair *pair)
{
    bool ended[2] = {false, false};

    for (int turn = 0; turn < 1000 && !(ended[0] && ended[1]); turn++) {
        for (int side = 0; side < 2; side++) {
            ssize_t result = ended[side] ? 0 : write_stream(pair, side, "", 0);

            if (result && result != -EAGAIN)
                return (int)result;
            ended[side] |= result == 0;
        }
        while (run_relay(pair))
            ;
    }
    assert_true(ended[0] && ended[1]);
    pair->armed = true;
    return 0;
}

/* Write `bytes` in pieces, pass records, and read, until all is read or a side fails. The reader's last result. */
static ssize_t transfer_bytes(struct pair *pair, const char *bytes, size_t length, size_t piece, char *received,
                              size_t *received_length)
{
    size_t written = 0;
    ssize_t result = -EAGAIN;

    *received_length = 0;
    for (int idle = 0; *received_length < length && idle < 1000; idle++) {
        size_t part = length - written < piece ? length - written : piece;

        result = part || pair->streams[0].unsent ? write_stream(pair, 0, bytes + written, part) : 0;
        if (result > 0)
            written += (size_t)result;
        if (run_relay(pair))
            idle = 0;
        result = read_stream(pair, 1, received + *received_length, length - *received_length);
        if (result > 0)
            *received_length += (size_t)result;
        if (result == 0 || (result < 0 && result != -EAGAIN))
            return result;
        if (result > 0)
            idle = 0;
    }
    return result;
}

#endif
