/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other side of a connection: it writes what the target tells it to, and reads and checks all that the endpoint says. What it
 * learns on the way (ids, lengths, what is owed) lets a target answer as a peer would, or nearly so.
 */
#ifndef FUZZ_FAR_H
#define FUZZ_FAR_H

#include "proof/sha256.h"
#include "network.h"
#include "objects.h"
#include "stream/tls.h"

#define FAR_ROOM (256u << 10)
#define FAR_KEPT 16

/* A direction of a stream, message by message. */
struct far_reader {
    uint8_t bytes[TCP_HEADER_MAX];
    size_t have;
    uint64_t payload; /* of the last header, still to come */
};

/* Numbers that the other side has named, the newest over the oldest. */
struct far_numbers {
    uint64_t id[FAR_KEPT], length[FAR_KEPT];
    uint32_t count;
};

struct far {
    int fd; /* -1: none */
    bool swapped, extended, meeting, ended, garbled;
    bool lenient;  /* nobody knows what was agreed */
    bool says_who; /* it offers its identity */
    uint8_t newest,
        earlier; /* versions of the extension that it says, as in a control message; 0: those of this build */
    uint8_t next_id, expected_id;
    size_t heard_bytes; /* since the handshake */
    struct far_reader said, heard;
    /* In what was said, and in what was heard. */
    uint64_t wants_ack, wants_answer, wants_pull, wants_clear, acks, answers, pulled, cleared;
    uint64_t announced;                         /* our newest id */
    struct far_numbers ours;                    /* announcements of ours, by id */
    struct far_numbers rendezvous;              /* the same by rendezvous */
    struct far_numbers announcements, requests; /* theirs: by id, and by rendezvous */
    struct far_numbers pulls, clears;           /* what they ask for */
    struct far_numbers reads;                   /* length, and whether it fetches */
    uint64_t reads_answered;
    uint64_t nonce[TCP_NONCE_WORDS];
    struct tcp_stream stream; /* of `fd`, once it is encrypted */
    bool encrypted;
    uint8_t out[FAR_ROOM]; /* to be written */
    size_t out_begin, out_end;
};

static inline void far_remember(struct far_numbers *numbers, uint64_t id, uint64_t length)
{
    numbers->id[numbers->count % FAR_KEPT] = id;
    numbers->length[numbers->count++ % FAR_KEPT] = length;
}

/* One of them, `back` before the newest; its length in *length. */
static inline uint64_t far_recall(const struct far_numbers *numbers, uint32_t back, uint64_t *length)
{
    uint32_t place = (numbers->count - 1 - back % FAR_KEPT) % FAR_KEPT;

    *length = numbers->count ? numbers->length[place] : 0;
    return numbers->count ? numbers->id[place] : 0;
}

static inline uint64_t far_length_of(const struct far_numbers *numbers, uint64_t id)
{
    for (uint32_t i = 0; i < FAR_KEPT; i++)
        if (numbers->id[i] == id)
            return numbers->length[i];
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- reading */

static inline void far_said(struct far *far, const struct tcp_header *header)
{
    /* Between ofipy peers every write can be refused. */
    far->wants_ack += header->flags & TCP_FLAGS_ACK || (header->op == TCP_WRITE && far->extended) ||
                      (header->op == TCP_ATOMIC && header->op_data == OFP_ATOMIC);
    far->wants_pull += header->op == TCP_ANNOUNCE;
    far->wants_clear += header->op == TCP_TAG_RTS;
    far->wants_answer += header->op == TCP_READ_REQ || (header->op == TCP_ATOMIC && header->op_data != OFP_ATOMIC);
}

/* It keeps to what was agreed, and says no more than was asked for: stock peers do not survive it. */
static inline void far_heard(struct far *far, const struct tcp_header *header)
{
    if (tcp_header_is_ack(header) || (header->op == TCP_REFUSED && header->op_data == TCP_REFUSED_ACK))
        far->acks++;
    if (header->op == TCP_READ_RSP || header->op == TCP_FETCHED ||
        (header->op == TCP_REFUSED && header->op_data == TCP_REFUSED_ANSWER))
        far->answers++;
    check(far->lenient || (far->acks <= far->wants_ack && far->answers <= far->wants_answer));
    switch (header->op) {
    case TCP_HELLO:
        memcpy(far->nonce, header->words + 1, sizeof(far->nonce));
        break;
    case TCP_ANNOUNCE:
        far_remember(&far->announcements, header->words[0], header->length);
        break;
    case TCP_TAG_RTS:
        far_remember(&far->requests, header->op_data, header->length);
        break;
    case TCP_PULL:
        check(++far->pulled <= far->wants_pull || far->lenient);
        far_remember(&far->pulls, header->words[1], far_length_of(&far->ours, header->words[0]));
        break;
    case TCP_CTS:
        check(++far->cleared <= far->wants_clear || far->lenient);
        far_remember(&far->clears, header->op_data, far_length_of(&far->rendezvous, header->op_data));
        break;
    case TCP_READ_REQ:
        far_remember(&far->reads, 0, header->length);
        break;
    case TCP_ATOMIC:
        if (header->op_data != OFP_ATOMIC)
            far_remember(&far->reads, 1, header->length);
        break;
    default:
        break;
    }
}

/* Returns false where the bytes make no sense. */
static inline bool far_follow(struct far *far, struct far_reader *reader, const uint8_t *bytes, size_t length,
                              void (*seen)(struct far *, const struct tcp_header *))
{
    while (length) {
        struct tcp_header header;
        size_t part = reader->payload < length ? (size_t)reader->payload : length, size;

        reader->payload -= part;
        bytes += part;
        length -= part;
        if (!length)
            return true;
        size = reader->have < TCP_HEADER_BASE ? TCP_HEADER_BASE : tcp_header_decode_length(reader->bytes);
        if (!size)
            return false;
        if (reader->have < size) {
            reader->bytes[reader->have++] = *bytes++;
            length--;
        }
        if (reader->have < TCP_HEADER_BASE || reader->have != tcp_header_decode_length(reader->bytes))
            continue;
        if (tcp_header_decode(reader->bytes, far->swapped, far->extended, &header))
            return false;
        if (seen == far_heard && !far->lenient)
            check(reader->bytes[0] == TCP_WIRE_VERSION && reader->bytes[7] == far->expected_id++);
        reader->have = 0;
        reader->payload = header.payload;
        seen(far, &header);
    }
    return true;
}

/* As read and send, over the encrypted stream if there is one. */
static inline ssize_t far_receive(struct far *far, void *bytes, size_t length)
{
    struct iovec iov = {bytes, length};
    ssize_t result;

    if (!far->encrypted)
        return read(far->fd, bytes, length);
    result = far->stream.ops->readv(&far->stream, &iov, 1);
    if (result < 0)
        errno = (int)-result;
    return result < 0 ? -1 : result;
}

static inline ssize_t far_send(struct far *far, const void *bytes, size_t length)
{
    struct iovec iov = {(void *)(uintptr_t)bytes, length};
    ssize_t result;

    if (!far->encrypted)
        return send(far->fd, bytes, length, MSG_NOSIGNAL);
    result = far->stream.ops->writev(&far->stream, &iov, 1);
    if (result < 0)
        errno = (int)-result;
    return result < 0 ? -1 : result;
}

/* Read up to `length` bytes of what the endpoint has written. */
static inline void far_read(struct far *far, size_t length)
{
    uint8_t bytes[16384];

    while (far->fd >= 0 && length) {
        ssize_t result = far_receive(far, bytes, length < sizeof(bytes) ? length : sizeof(bytes));

        if (result == 0 || (result < 0 && errno != EAGAIN))
            far->ended = true;
        if (result <= 0)
            return;
        length -= (size_t)result;
        far->heard_bytes += (size_t)result;
        if (!far->meeting)
            check(far_follow(far, &far->heard, bytes, (size_t)result, far_heard) || far->lenient);
    }
}

/* ----------------------------------------------------------------------------------------------------------- writing */

static inline void far_put(struct far *far, const void *bytes, size_t length)
{
    if (length > FAR_ROOM - far->out_end) {
        memmove(far->out, far->out + far->out_begin, far->out_end - far->out_begin);
        far->out_end -= far->out_begin;
        far->out_begin = 0;
    }
    if (length > FAR_ROOM - far->out_end)
        length = FAR_ROOM - far->out_end;
    if (length)
        memcpy(far->out + far->out_end, bytes, length);
    far->out_end += length;
}

/* The next `length` bytes, as far as the socket takes them. False: none. */
static inline bool far_write(struct far *far, size_t length)
{
    size_t left = far->out_end - far->out_begin;
    ssize_t result;

    if (far->fd < 0 || !left)
        return false;
    result = far_send(far, far->out + far->out_begin, length < left ? length : left);
    if (result < 0 && errno != EAGAIN)
        far->ended = true;
    if (result <= 0)
        return false;
    if (!far->garbled && !far->meeting)
        far->garbled = !far_follow(far, &far->said, far->out + far->out_begin, (size_t)result, far_said);
    far->out_begin += (size_t)result;
    return true;
}

static inline void far_header(struct far *far, const struct tcp_header *header)
{
    uint8_t bytes[TCP_HEADER_MAX];

    far_put(far, bytes, tcp_header_encode(header, far->next_id++, far->swapped, bytes));
}

static inline void far_close(struct far *far)
{
    if (far->encrypted)
        far->stream.ops->close(&far->stream);
    else if (far->fd >= 0)
        close(far->fd);
    memset(far, 0, offsetof(struct far, out));
    far->fd = -1;
    far->out_begin = far->out_end = 0;
}

/* --------------------------------------------------------------------------------------------------------- meeting */

static inline uint8_t far_get_newest(const struct far *far)
{
    return far->newest ? far->newest : TCP_EXTENSION_VERSION;
}

static inline void far_control(struct far *far, uint8_t type, bool offer, bool proves, const void *private_data,
                               size_t length)
{
    uint8_t bytes[TCP_CONTROL_SIZE];
    struct tcp_control control = {.type = type,
                                  .private_size = (uint16_t)length,
                                  .magic = offer ? TCP_EXTENSION_MAGIC | far_get_newest(far) : 0,
                                  .capabilities = (uint64_t)far->earlier << TCP_CAPABILITY_EARLIER_SHIFT |
                                                  (proves ? TCP_CAPABILITY_AUTHENTICATION : 0) |
                                                  (far->says_who ? TCP_CAPABILITY_IDENTITY : 0)};

    tcp_control_encode(&control, bytes);
    if (far->swapped)
        for (int i = 0; i < 4; i++) {
            uint8_t byte = bytes[24 + i];

            bytes[24 + i] = bytes[31 - i];
            bytes[31 - i] = byte;
        }
    far_put(far, bytes, sizeof(bytes));
    far_put(far, private_data, length);
}

static inline void far_rdm(struct far *far, uint8_t type, bool offer, bool proves, const struct tcp_rdm *rdm)
{
    uint8_t bytes[TCP_RDM_SIZE];

    tcp_rdm_encode(rdm, bytes);
    far_control(far, type, offer, proves, bytes, sizeof(bytes));
}

static inline uint8_t *far_put_nonce(uint8_t *to, const uint64_t nonce[TCP_NONCE_WORDS])
{
    for (int i = 0; i < TCP_NONCE_WORDS * 8; i++)
        *to++ = (uint8_t)(nonce[i / 8] >> i % 8 * 8);
    return to;
}

/* What a peer with this key and no nonce but zeros has to say; `port`: what it listens at. */
static inline void far_proof(struct far *far, bool connector, uint16_t port, const uint8_t *key, size_t key_length)
{
    static const uint64_t zeros[TCP_NONCE_WORDS];
    uint16_t first = connector ? port : NETWORK_PORT, second = connector ? NETWORK_PORT : port;
    struct tcp_header header = {.op = TCP_PROOF};
    uint8_t bytes[160], proof[TCP_PROOF_SIZE], *end = bytes;

    *end++ = connector ? 'c' : 'a';
    end = far_put_nonce(end, connector ? zeros : far->nonce);
    end = far_put_nonce(end, connector ? far->nonce : zeros);
    memcpy(end, (uint8_t[]){4, 127, 0, 0, 1, (uint8_t)(first >> 8), (uint8_t)first}, 7);
    memcpy(end + 7, (uint8_t[]){4, 127, 0, 0, 1, (uint8_t)(second >> 8), (uint8_t)second}, 7);
    end += 14;
    *end++ = connector ? far_get_newest(far) : TCP_EXTENSION_VERSION;
    if (far_get_newest(far) != TCP_EXTENSION_VERSION)
        *end++ = connector ? TCP_EXTENSION_VERSION : far_get_newest(far);
    *end++ = TCP_CAPABILITY_AUTHENTICATION;
    if (far->encrypted) {
        memcpy(end, tcp_tls_get_export(&far->stream), TCP_TLS_EXPORT_SIZE);
        end += TCP_TLS_EXPORT_SIZE;
    }
    ofpi_hmac_compute(key, key_length, bytes, (size_t)(end - bytes), proof);
    for (int i = 0; i < TCP_PROOF_SIZE; i++)
        header.words[i / 8] |= (uint64_t)proof[i] << 8 * (i % 8);
    far_header(far, &header);
}

#endif
