/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint that encrypts, and one peer that has the key and has ended the TLS handshake: everything that it sends after
 * that is the input's, the frames inside TLS as in fuzz_tcp_session.c, and the records as well. Records that no peer may send
 * end the connection; nothing of them reaches the endpoint.
 *
 * OpenSSL draws numbers of its own, so the bytes on the wire differ from run to run, and what the endpoint does does not.
 */
#include "play.h"
#include "stream/tls_state.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rounds in which a handshake ends. */
#define ROUNDS 12
/* Of 256 steps, those that are about records. */
#define RECORD_STEPS 64
#define RECORD_MAX 512

static struct session session;
/* Of the far side. */
static struct tcp_tls_context *context;
static struct ofpi_keyring *ring;

/* The handshake of both sides. False: it has failed, or the endpoint did not take part. */
static bool encrypt_far(struct session *self, bool connector)
{
    struct far *far = &self->far;
    ssize_t result = -EAGAIN;

    far->stream = (struct tcp_stream){.ops = &tcp_plain_stream, .fd = far->fd};
    check(tcp_tls_start(&far->stream, context, &(struct tcp_tls_side){.connector = connector, .ring = ring}) == 0);
    far->encrypted = true;
    for (int i = 0; i < ROUNDS && result == -EAGAIN; i++) {
        side_progress(&self->side);
        result = far->stream.ops->writev(&far->stream, NULL, 0);
    }
    side_progress(&self->side);
    if (result < 0)
        far->ended = true;
    return result == 0;
}

/* ------------------------------------------------------------------------------------------------------------ records */

/* Bytes that OpenSSL never saw: a whole record, a part of one, or noise. */
static void send_foreign_record(struct session *self)
{
    static const uint8_t types[] = {20, 21, 22, 23, 23, 24, 0, 255};
    uint8_t byte = take(&self->input), bytes[5 + RECORD_MAX];
    size_t length = take(&self->input) * UINT64_C(2), sent = byte & 64 ? length / 2 : length;

    bytes[0] = types[byte & 7];
    bytes[1] = byte & 8 ? 3 : 4;
    bytes[2] = byte & 16 ? 3 : take(&self->input);
    bytes[3] = (uint8_t)((byte & 32 ? length : length + 16384) >> 8);
    bytes[4] = (uint8_t)length;
    for (size_t i = 0; i < length; i++)
        bytes[5 + i] = i < self->input.size ? self->input.data[i] : (uint8_t)i;
    if (send(self->far.fd, bytes + (byte & 128 ? 5 : 0), sent + (byte & 128 ? 0 : 5), MSG_NOSIGNAL) < 0)
        self->far.ended = true;
    /* What follows is garbled to the endpoint, whatever it is. */
    self->far.garbled = self->far.lenient = true;
}

/* Records that a peer may send at any time. */
static void send_record(struct session *self)
{
    struct ssl_st *ssl = ((struct tcp_tls *)(void *)(uintptr_t)self->far.stream.ops)->ssl;
    uint8_t byte = take(&self->input);

    switch (byte & 3) {
    case 0: /* new keys, of this side alone or of both */
        tcp_library.SSL_key_update(ssl, byte >> 2 & 1);
        break;
    case 1: /* the end of one direction, with close_notify */
        self->far.stream.ops->shutdown(&self->far.stream);
        self->far.ended = true;
        break;
    case 2: /* and without */
        shutdown(self->far.fd, SHUT_WR);
        self->far.ended = true;
        break;
    default: /* many updates in turn, each of which demands one of the endpoint */
        for (int i = 0; i < (byte >> 2) % 16; i++) {
            tcp_library.SSL_key_update(ssl, 1);
            far_write(&self->far, 1);
        }
        break;
    }
}

static void play_step(struct session *self)
{
    if (self->far.encrypted && self->far.fd >= 0 && self->input.size && self->input.data[0] >= 256 - RECORD_STEPS) {
        uint8_t byte = take(&self->input);

        if (byte & 1)
            send_record(self);
        else
            send_foreign_record(self);
        side_progress(&self->side);
        far_read(&self->far, FAR_ROOM);
        return;
    }
    step(self);
}

/* ------------------------------------------------------------------------------------------------------------- target */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct tcp_tls_files none;
    char text[OFP_TEXT_MAX];

    (void)argc;
    (void)argv;
    if (tcp_tls_context_create(&context, &none, text, sizeof(text)) != 0) {
        fprintf(stderr, "skipped: %s\n", text);
        exit(0);
    }
    ring = side_create_ring();
    return 0;
}

static void open_session(struct session *self)
{
    struct tcp_domain *domain;

    network_begin();
    network.connect = NETWORK_CONNECTS;
    network.buffer = self->kind & KIND_SMALL ? 1 : 0;
    side_open(&self->side, self->kind & KIND_MSG, true, true);
    domain = tcp_domain_of(self->side.domain);
    domain->encryption = TCP_ENCRYPT_ALL;
    begin(self);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session *self = &session;

    self->input = (struct input){data, size};
    /* Only peers with the key get this far. */
    self->kind = (take(&self->input) | KIND_KEY) & (uint8_t)~KIND_SWAPPED;
    self->pid = 77;
    self->encrypt = encrypt_far;
    self->far.fd = -1;
    far_close(&self->far);
    open_session(self);
    for (int i = 0; i < STEPS && self->input.size; i++)
        play_step(self);
    for (int i = 0; i < 4 && far_write(&self->far, FAR_ROOM); i++)
        side_progress(&self->side);
    far_read(&self->far, FAR_ROOM);
    if (self->pid & 1)
        far_close(&self->far);
    side_close(&self->side, 20000);
    far_read(&self->far, FAR_ROOM);
    far_close(&self->far);
    return 0;
}
