/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections until they are up, or not: several at a time, opened by others or by the endpoint, of both types, with and without
 * a key, some by later releases. Requests, answers, greetings and proofs come nearly right, wrong, or as noise, in pieces, and time passes between
 * them. Whoever has not proved that it has the key is not listened to.
 */
#include "far.h"
#include "side.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIRST_PORT 1234
#define OTHERS 4
#define STEPS 300

/* First byte of an input. */
enum { KIND_MSG = 1, KIND_KEY = 2, KIND_ASKS = 4, KIND_STOCK = 8 };

struct other {
    struct far far;
    bool connector, heard; /* its request or answer */
    bool answered;         /* or it may have: what it says is a stream then */
};

struct handshake {
    struct input input;
    uint8_t kind;
    bool proven; /* by anybody, perhaps */
    uint32_t peer;
    struct other others[OTHERS], *other; /* the one that the next step is about */
    struct side side;
};

static struct handshake handshake;

/* ----------------------------------------------------------------------------------------------------- what others say */

/* Nobody but the input knows what was agreed. */
static void begin(struct other *other, int fd, bool connector)
{
    far_close(&other->far);
    other->far.fd = fd;
    other->far.lenient = other->far.extended = true;
    other->connector = connector;
    other->heard = other->answered = false;
}

static uint16_t port_of(const struct handshake *self)
{
    return (uint16_t)(FIRST_PORT + (self->other - self->others) / 2);
}

/* With an identity, whether or not that was asked for; or the question for it: then true. */
static bool say_rdm(struct handshake *self, uint8_t type, uint8_t byte, bool identified, const struct tcp_rdm *rdm)
{
    struct far *far = &self->other->far;
    uint8_t bytes[TCP_RDM_IDENTIFIED_SIZE];
    bool may_ask = !self->other->connector && !self->other->answered;
    bool asks = far->says_who && may_ask && !identified && type == TCP_CONNRESP;

    tcp_rdm_encode(rdm, bytes);
    memset(bytes + TCP_RDM_SIZE, byte & 7, OFP_IDENTITY_SIZE);
    far_control(far, type, byte & 32, byte & 64, bytes,
                identified ? TCP_RDM_IDENTIFIED_SIZE : (asks ? 0 : TCP_RDM_SIZE));
    /* The other side's request follows. */
    if (asks)
        self->other->heard = false;
    else
        self->other->answered = true;
    return asks;
}

static void say_control(struct handshake *self)
{
    static const uint8_t types[] = {TCP_CONNREQ, TCP_CONNRESP, TCP_NACK, TCP_CONNREQ};
    struct far *far = &self->other->far;
    uint8_t byte = take(&self->input), twist = take(&self->input), private_data[300];
    uint8_t type = byte & 3 ? types[byte & 3] : (self->other->connector ? TCP_CONNREQ : TCP_CONNRESP);
    struct tcp_rdm rdm = {.version = byte >> 2 & 1 ? 0x81 : 1, .port = port_of(self), .pid = byte >> 3 & 1};
    size_t begin = far->out_end;
    bool asks = false;

    far->swapped = byte & 16;
    memset(private_data, 'p', sizeof(private_data));
    far->says_who = twist & 8;
    if (twist & 32) {
        far->newest = twist >> 6 ? TCP_EXTENSION_VERSION + (twist >> 6) : take(&self->input);
        far->earlier = take(&self->input) % 4;
    }
    if (twist & 1)
        rdm.port = take(&self->input) & 1 ? 0 : NETWORK_PORT;
    if (!(twist & 2) && !(self->kind & KIND_MSG)) {
        asks = say_rdm(self, type, byte, twist & 16, &rdm);
    } else {
        far_control(far, type, byte & 32, byte & 64, private_data, twist & 2 ? take(&self->input) : 5);
        self->other->answered = true;
    }
    /* A question with another byte could be an answer. */
    if (twist & 4 && !asks && begin < far->out_end) {
        size_t place = begin + take(&self->input) % (far->out_end - begin);

        far->out[place] = take(&self->input);
    }
}

static void say_header(struct handshake *self)
{
    uint8_t byte = take(&self->input);
    struct tcp_header header = {.op = byte % TCP_OPS, .tag = 1, .words = {byte}};

    if (header.op == TCP_TAG || header.op == TCP_MSG)
        header.payload = 1;
    far_header(&self->other->far, &header);
    far_put(&self->other->far, "x", header.payload);
}

static void say_proof(struct handshake *self)
{
    uint8_t twist = take(&self->input);
    uint16_t port = self->kind & KIND_MSG && !self->other->connector ? FIRST_PORT : port_of(self);
    struct far *far = &self->other->far;
    size_t begin = far->out_end;

    far_proof(far, self->other->connector, port, (const uint8_t *)SIDE_KEY, sizeof(SIDE_KEY));
    if (twist & 1 && begin < far->out_end)
        far->out[far->out_end - 1 - twist / 2 % TCP_PROOF_SIZE] ^= (uint8_t)(take(&self->input) | 1);
    else
        self->proven = true;
}

static void say_noise(struct handshake *self)
{
    size_t length = take(&self->input) % 64;

    if (length > self->input.size)
        length = self->input.size;
    far_put(&self->other->far, self->input.data, length);
    self->input.data += length;
    self->input.size -= length;
    self->other->answered = true;
    /* It may have been in an earlier answer. */
    self->proven |= length >= TCP_PROOF_SIZE;
}

/* First of all a control message, at once; then a stream. */
static void listen_to(struct handshake *self)
{
    struct far *far = &self->other->far;
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control;
    size_t length;

    if (far->fd < 0)
        return;
    if (!self->other->heard) {
        if (recv(far->fd, bytes, TCP_CONTROL_SIZE, MSG_PEEK) != TCP_CONTROL_SIZE)
            return;
        check(tcp_control_decode(bytes, &control) == 0);
        check(control.type ==
              (self->other->connector ? (control.type == TCP_NACK ? TCP_NACK : TCP_CONNRESP) : TCP_CONNREQ));
        length = TCP_CONTROL_SIZE + control.private_size;
        check(read(far->fd, bytes, length) == (ssize_t)length);
        /* A question who that is comes before the answer. */
        self->other->heard = control.private_size || self->kind & KIND_MSG;
    }
    far_read(far, FAR_ROOM);
}

/* ---------------------------------------------------------------------------------------------------- what happens here */

static void post(struct handshake *self, uint16_t code)
{
    struct ofp_operation op = {.op = code, .peer = code == OFP_TRECV ? OFP_PEER_ANY : self->peer, .tag = 1};
    struct side_operation *operation = side_operation(&self->side, &op, 8, 1);

    if (operation)
        side_post(&self->side, operation, &op);
}

/* Requests to a listener, and how the endpoint's own ended. */
static void see_events(struct handshake *self)
{
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX];
    uint8_t byte = take(&self->input);

    if (ofp_eq_read(self->side.eq, &event, data) != 1 || event.kind != OFP_EVENT_CONNREQ)
        return;
    if (byte & 1 || self->side.endpoint) {
        check(ofp_passive_reject(self->side.passive, event.handle, "no", 2) == 0);
        return;
    }
    side_open_endpoint(&self->side, event.handle, 100000);
    if (byte & 2)
        ofp_accept(self->side.endpoint, "yes", 3);
    post(self, OFP_RECV);
}

static void open_connection(struct handshake *self)
{
    uint8_t byte = take(&self->input);
    int fd = network_depart();

    if (fd >= 0) {
        begin(self->other, fd, false);
        return;
    }
    fd = network_arrive(port_of(self));
    if (fd >= 0)
        begin(self->other, fd, true);
    if (byte & 1)
        side_progress(&self->side);
}

static void step(struct handshake *self)
{
    uint8_t what = take(&self->input), byte;
    struct far *far = &self->other->far;

    switch (what % 13) {
    case 0:
        open_connection(self);
        break;
    case 1:
        say_control(self);
        break;
    case 2:
        say_header(self);
        break;
    case 3:
        say_proof(self);
        break;
    case 4:
        say_noise(self);
        break;
    case 5:
        far_write(far, FAR_ROOM);
        side_progress(&self->side);
        listen_to(self);
        break;
    case 6:
        far_write(far, 1 + take(&self->input) % 64u);
        side_progress(&self->side);
        break;
    case 7:
        self->other = &self->others[take(&self->input) % OTHERS];
        break;
    case 8:
        if (what & 128)
            far_close(far);
        else if (far->fd >= 0)
            shutdown(far->fd, SHUT_WR);
        side_progress(&self->side);
        break;
    case 9:
        byte = take(&self->input);
        network.now += byte & 1 ? TCP_MILLISECOND << (byte >> 1 & 7) : TCP_SECOND << (byte >> 1 & 3);
        side_progress(&self->side);
        break;
    case 10:
        network.connect = take(&self->input) % 3;
        post(self, OFP_TSEND);
        break;
    case 11:
        see_events(self);
        break;
    default:
        post(self, OFP_TRECV);
        break;
    }
}

static void open_side(struct handshake *self)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    struct ofp_passive_attr attr = {.eq = self->side.eq, .backlog = 2};
    char text[OFP_TEXT_MAX];

    network_address(FIRST_PORT, (struct sockaddr *)&address, &length);
    if (!(self->kind & KIND_MSG)) {
        side_open_endpoint(&self->side, 0, 100000);
        check(ofp_av_insert(self->side.av, &address, sizeof(address), &self->peer) == 0);
    } else if (self->kind & KIND_ASKS) {
        network.connect = take(&self->input) % 3;
        side_open_endpoint(&self->side, 0, 100000);
        ofp_connect(self->side.endpoint, &address, sizeof(address), "hello", 5);
    } else {
        check(ofp_passive_open(self->side.domain, &attr, &self->side.passive, text, sizeof(text)) == 0);
        check(ofp_passive_listen(self->side.passive) == 0);
    }
}

/* A message that came means a proof that came before. */
static void check_proof(struct handshake *self)
{
    struct ofp_endpoint_statistics statistics;

    if (!(self->kind & KIND_KEY) || self->proven || !self->side.endpoint)
        return;
    check(ofp_endpoint_statistics(self->side.endpoint, &statistics) == 0);
    check(!statistics.bytes_received && !statistics.unexpected_messages && !statistics.announced_messages &&
          !statistics.peers_up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct handshake *self = &handshake;

    self->input = (struct input){data, size};
    self->kind = take(&self->input);
    self->proven = false;
    self->other = self->others;
    for (int i = 0; i < OTHERS; i++) {
        self->others[i].far.fd = -1;
        begin(&self->others[i], -1, true);
    }
    network_begin();
    network.connect = NETWORK_CONNECTS;
    side_open(&self->side, self->kind & KIND_MSG, self->kind & KIND_KEY, !(self->kind & KIND_STOCK));
    open_side(self);
    for (int i = 0; i < STEPS && self->input.size; i++)
        step(self);
    check_proof(self);
    side_close(&self->side, 20000);
    for (int i = 0; i < OTHERS; i++)
        far_close(&self->others[i].far);
    return 0;
}
