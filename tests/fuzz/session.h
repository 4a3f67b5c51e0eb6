/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint and the one peer of its session, of the kinds that the input says, until both have met. */
#ifndef FUZZ_SESSION_H
#define FUZZ_SESSION_H

#include "far.h"
#include "side.h"

#define FAR_PORT 1234
/* Private data of the endpoint's own request. */
#define SAID "hello"

/* First byte of an input. */
enum {
    KIND_EXTENDED = 1,
    KIND_KEY = 2,
    KIND_SWAPPED = 4,
    KIND_OLD = 8,
    KIND_MSG = 16,
    KIND_ASKS = 32,
    KIND_SMALL = 64,
    KIND_FULL = 128
};

struct session {
    struct input input;
    uint8_t kind;
    uint32_t peer, itself; /* in the vector */
    uint32_t pid;
    struct far far;
    struct side side;
    /* Encrypts what the far side opens or takes from here on, and tells whether that worked; NULL: all is plain. */
    bool (*encrypt)(struct session *self, bool connector);
};

/* A greeting and a proof. */
#define GREETING (TCP_HEADER_BASE + 5 * 8 + TCP_HEADER_BASE + TCP_PROOF_SIZE)

static inline bool offers(const struct session *self) { return self->kind & (KIND_EXTENDED | KIND_KEY); }

/* For unexpected messages, bytes. */
static inline uint64_t room(const struct session *self) { return self->kind & KIND_FULL ? 20000 : 1000000; }

static inline void far_address(struct sockaddr_in *address, uint16_t port)
{
    socklen_t length = sizeof(*address);

    network_address(port, (struct sockaddr *)address, &length);
}

/* ----------------------------------------------------------------------------------------------------------- meeting */

/* The endpoint's control message with `length` bytes of private data. */
static inline bool hear_control(struct session *self, size_t length, struct tcp_control *control)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];

    while (far_write(&self->far, FAR_ROOM))
        ;
    for (int i = 0; i < 3; i++)
        side_progress(&self->side);
    if (far_receive(&self->far, bytes, TCP_CONTROL_SIZE + length) != (ssize_t)(TCP_CONTROL_SIZE + length))
        return false;
    check(tcp_control_decode(bytes, control) == 0);
    return true;
}

/* Type MSG: the program takes the request. */
static inline void accept_request(struct session *self)
{
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX];

    while (far_write(&self->far, FAR_ROOM))
        ;
    side_progress(&self->side);
    if (ofp_eq_read(self->side.eq, &event, data) != 1)
        return;
    check(event.kind == OFP_EVENT_CONNREQ);
    side_open_endpoint(&self->side, event.handle, room(self));
    ofp_accept(self->side.endpoint, NULL, 0);
}

/* Connected endpoints with a key: the first request only asks for the proof. */
static inline bool asks_twice(const struct session *self) { return self->kind & KIND_MSG && self->kind & KIND_KEY; }

static inline void greet(struct session *self, bool connector)
{
    struct tcp_header hello = {.op = TCP_HELLO, .words = {take(&self->input) << 8}};

    far_header(&self->far, &hello);
    while (far_write(&self->far, FAR_ROOM))
        ;
    side_progress(&self->side);
    far_read(&self->far, 4096);
    if (self->kind & KIND_KEY)
        far_proof(&self->far, connector, FAR_PORT, (const uint8_t *)SIDE_KEY, sizeof(SIDE_KEY));
    while (far_write(&self->far, FAR_ROOM))
        ;
    side_progress(&self->side);
    far_read(&self->far, asks_twice(self) ? GREETING - self->far.heard_bytes : 4096);
}

/* Behind the proof comes the request that counts, and its answer. */
static inline void meet_again(struct session *self, bool connector)
{
    struct tcp_control control;
    bool done;

    self->far.meeting = true;
    if (connector) {
        far_control(&self->far, TCP_CONNREQ, true, true, NULL, 0);
        accept_request(self);
        done = hear_control(self, 0, &control) && control.type == TCP_CONNRESP;
    } else {
        done = hear_control(self, sizeof(SAID), &control) && control.type == TCP_CONNREQ;
        far_control(&self->far, TCP_CONNRESP, true, true, NULL, 0);
    }
    while (far_write(&self->far, FAR_ROOM))
        ;
    side_progress(&self->side);
    self->far.meeting = false;
    self->far.lenient = !done;
}

/* A connection that one of the two has opened; without effect where it does not come about. */
static inline void meet(struct session *self, int fd, bool connector)
{
    struct tcp_rdm rdm = {.version = self->kind & KIND_OLD ? 0 : 1, .port = FAR_PORT, .pid = self->pid};
    uint8_t type = connector ? TCP_CONNREQ : TCP_CONNRESP;
    bool key = self->kind & KIND_KEY, msg = self->kind & KIND_MSG, answered = true;
    struct tcp_control control;
    size_t private_size = msg ? (connector || asks_twice(self) ? 0 : sizeof(SAID)) : TCP_RDM_SIZE;

    far_close(&self->far);
    self->far.fd = fd;
    if (fd < 0 || (self->encrypt && !self->encrypt(self, connector)))
        return;
    self->far.swapped = self->kind & KIND_SWAPPED;
    self->far.meeting = true;
    if (!connector) {
        rdm.version |= rdm.version ? TCP_RDM_UNDERSTOOD : 0;
        answered = hear_control(self, private_size, &control);
    }
    if (msg)
        far_control(&self->far, type, offers(self), key, NULL, 0);
    else
        far_rdm(&self->far, type, offers(self), key, &rdm);
    if (connector && msg && !key && !self->side.endpoint)
        accept_request(self);
    if (connector)
        answered = hear_control(self, private_size, &control) && control.type == TCP_CONNRESP;
    if (!answered)
        return;
    while (far_write(&self->far, FAR_ROOM))
        ;
    side_progress(&self->side);
    self->far.meeting = false;
    self->far.extended = offers(self) && tcp_magic_is_extension(control.magic);
    /* Else the input greets, or does not. */
    if (!self->far.extended || take(&self->input) >= 224)
        return;
    greet(self, connector);
    if (asks_twice(self) && !self->far.ended)
        meet_again(self, connector);
}

static inline void begin(struct session *self)
{
    struct sockaddr_in address;
    struct ofp_passive_attr attr = {.eq = self->side.eq};
    char text[OFP_TEXT_MAX];

    far_address(&address, FAR_PORT);
    if (!(self->kind & KIND_MSG)) {
        side_open_endpoint(&self->side, 0, room(self));
        check(ofp_av_insert(self->side.av, &address, sizeof(address), &self->peer) == 0);
        far_address(&address, NETWORK_PORT);
        check(ofp_av_insert(self->side.av, &address, sizeof(address), &self->itself) == 0);
        if (!(self->kind & KIND_ASKS))
            meet(self, network_arrive(FAR_PORT), true);
        return;
    }
    if (self->kind & KIND_ASKS) {
        side_open_endpoint(&self->side, 0, room(self));
        check(ofp_connect(self->side.endpoint, &address, sizeof(address), SAID, sizeof(SAID)) == 0);
        side_progress(&self->side);
        return;
    }
    check(ofp_passive_open(self->side.domain, &attr, &self->side.passive, text, sizeof(text)) == 0);
    check(ofp_passive_listen(self->side.passive) == 0);
    meet(self, network_arrive(FAR_PORT), true);
}

#endif
