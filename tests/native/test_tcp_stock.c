/* SPDX-License-Identifier: BSD-3-Clause */
/* Traps that a stock peer sets: connections that we open to one, what we ask of it, and what outlives a connection. */
#include <sys/resource.h>

#include "test_tcp_fixture.h"

#define REQUEST_SIZE (TCP_CONTROL_SIZE + TCP_RDM_SIZE)
#define ROUNDS 50

static int setup(void **state)
{
    struct side *side = malloc(sizeof(*side));

    if (!side)
        return -1;
    tcp_side_open(side);
    *state = side;
    return 0;
}

static int teardown(void **state)
{
    struct side *side = *state;

    side_close(side);
    free(side);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- a peer that listens */

/* At a port above or below the endpoint's, which decides who wins when both connect at once. */
static int raw_listen(struct side *side, bool above, uint32_t *peer)
{
    union tcp_address own = address_of(side), address = own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), step = above ? 1 : -1;
    unsigned port = tcp_address_get_port(&own);

    assert_true(fd >= 0);
    do {
        port = (unsigned)((int)port + step);
        assert_in_range(port, 1024, 65535);
        address.v4.sin_port = htons((uint16_t)port);
    } while (bind(fd, &address.any, sizeof(address.v4)));
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(ofp_av_insert(side->av, &address, sizeof(address.v4), peer), 0);
    return fd;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

static void progress(struct side *side)
{
    for (int i = 0; i < ROUNDS; i++)
        ofp_domain_progress(side->domain);
}

/* The endpoint's request, as it came in one piece. */
static int raw_accept(struct side *side, int listener, struct tcp_control *control, struct tcp_rdm *rdm)
{
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    uint8_t bytes[REQUEST_SIZE + 1];
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    ssize_t size;
    int fd;

    while ((fd = accept(listener, (struct sockaddr *)&from, &length)) < 0) {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    /* It is known by where it connects from, and by the port that it names. */
    assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    while ((size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) < 0) {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(size, REQUEST_SIZE);
    assert_int_equal(tcp_control_decode(bytes, control), 0);
    assert_int_equal(control->private_size, TCP_RDM_SIZE);
    tcp_rdm_decode(bytes + TCP_CONTROL_SIZE, rdm);
    return fd;
}

/* An answer, with a tagged message of one byte behind it if there is a byte. */
static void raw_answer(int fd, enum tcp_control_type type, struct tcp_rdm rdm, const char *byte)
{
    struct tcp_control control = {.type = (uint8_t)type, .private_size = TCP_RDM_SIZE};
    struct tcp_header header = {.op = TCP_TAG, .tag = 1, .payload = 1};
    uint8_t bytes[REQUEST_SIZE + TCP_HEADER_MAX + 1];
    size_t size = REQUEST_SIZE;

    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(&rdm, bytes + TCP_CONTROL_SIZE);
    if (byte) {
        size += tcp_header_encode(&header, 0, false, bytes + size);
        bytes[size++] = (uint8_t)*byte;
    }
    raw_write(fd, bytes, size);
}

static struct tcp_header raw_next(struct side *side, int fd, void *payload)
{
    uint8_t bytes[TCP_HEADER_MAX];
    struct tcp_header header;

    assert_true(raw_read(side, fd, bytes, TCP_HEADER_BASE));
    assert_true(raw_read(side, fd, bytes + TCP_HEADER_BASE, tcp_header_decode_length(bytes) - TCP_HEADER_BASE));
    assert_null(tcp_header_decode(bytes, false, false, &header));
    if (header.payload)
        assert_true(raw_read(side, fd, payload, header.payload));
    return header;
}

static void raw_is_silent(struct side *side, int fd)
{
    char byte;

    progress(side);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* The request is one write and says who asks; nothing follows it before the answer, and data may follow that at once. */
static void test_a_request_of_ours(void **state)
{
    struct side *side = *state;
    union tcp_address own = address_of(side);
    struct tcp_control control;
    struct tcp_rdm rdm;
    uint32_t peer;
    int listener = raw_listen(side, true, &peer), fd;
    char room[8];

    post(side, tagged(OFP_TRECV, peer, 1, room, 8, 1));
    post(side, tagged(OFP_TSEND, peer, 5, "a", 1, 2));
    post(side, tagged(OFP_TSEND, peer, 6, "b", 1, 2));
    fd = raw_accept(side, listener, &control, &rdm);
    assert_int_equal(control.type, TCP_CONNREQ);
    assert_false(control.swapped);
    assert_int_equal(rdm.version, TCP_RDM_VERSION);
    assert_int_equal(rdm.features, 0);
    assert_int_equal(rdm.port, tcp_address_get_port(&own));
    assert_int_equal(rdm.pid, getpid());
    raw_is_silent(side, fd);
    rdm.version = TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD;
    raw_answer(fd, TCP_CONNRESP, rdm, "x");
    assert_int_equal(raw_next(side, fd, room + 4).tag, 5);
    assert_int_equal(raw_next(side, fd, room + 5).tag, 6);
    assert_memory_equal(room + 4, "ab", 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_completion(side, NULL).error, 0);
    assert_int_equal(room[0], 'x');
    close(fd);
    close(listener);
}

/* The larger address has asked too: it refuses, and its own connection carries what waits; we do not ask again. */
static void test_both_ask_and_the_peer_wins(void **state)
{
    struct side *side = *state;
    struct tcp_control control;
    struct tcp_rdm rdm;
    uint32_t peer;
    int listener = raw_listen(side, true, &peer), fd;
    char byte;

    post(side, tagged(OFP_TSEND, peer, 5, "a", 1, 2));
    fd = raw_accept(side, listener, &control, &rdm);
    raw_answer(fd, TCP_NACK, rdm, NULL);
    close(fd);
    progress(side);
    assert_int_equal(accept(listener, NULL, NULL), -1);
    fd = raw_meet_as(side, port_of(listener), RAW_PID, 0, &control, &rdm);
    assert_int_equal(control.type, TCP_CONNRESP);
    assert_int_equal(raw_next(side, fd, &byte).tag, 5);
    assert_int_equal(accept(listener, NULL, NULL), -1);
    close(fd);
    close(listener);
}

static void test_both_ask_and_we_win(void **state)
{
    struct side *side = *state;
    struct tcp_control control, answer;
    struct tcp_rdm rdm, refused;
    uint32_t peer;
    int listener = raw_listen(side, false, &peer), fd, second;
    char byte;

    post(side, tagged(OFP_TSEND, peer, 5, "a", 1, 2));
    fd = raw_accept(side, listener, &control, &rdm);
    second = raw_meet_as(side, port_of(listener), RAW_PID, 0, &answer, &refused);
    assert_int_equal(answer.type, TCP_NACK);
    assert_int_equal(refused.port, port_of(listener));
    raw_is_dropped(side, second);
    raw_answer(fd, TCP_CONNRESP, rdm, NULL);
    assert_int_equal(raw_next(side, fd, &byte).tag, 5);
    close(fd);
    close(listener);
}

static void test_a_request_waits_for_a_descriptor(void **state)
{
    struct side *side = *state;
    struct rlimit before, limit;
    struct tcp_control control;
    struct tcp_rdm rdm;
    uint32_t peer;
    int listener = raw_listen(side, true, &peer), fd;
    char byte;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)dup(0);
    close((int)limit.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    post(side, tagged(OFP_TSEND, peer, 5, "a", 1, 2));
    progress(side);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    fd = raw_accept(side, listener, &control, &rdm);
    raw_answer(fd, TCP_CONNRESP, rdm, NULL);
    assert_int_equal(raw_next(side, fd, &byte).tag, 5);
    assert_int_equal(next_completion(side, NULL).error, 0);
    close(fd);
    close(listener);
}

/* Our request gave way to one whose sender is gone when we answer: what waits for a connection asks for another. */
static void test_the_winner_goes_before_our_answer(void **state)
{
    struct side *side = *state;
    struct tcp_rdm rdm, theirs = {.version = 1, .pid = RAW_PID};
    struct tcp_stream_ops broken = tcp_plain_stream;
    struct ofp_list *connections = &tcp_endpoint_of(side->endpoint)->connections;
    uint8_t bytes[REQUEST_SIZE], byte;
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = TCP_RDM_SIZE};
    uint32_t peer;
    int listener = raw_listen(side, true, &peer), ours, fd, second;

    theirs.port = port_of(listener);
    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(&theirs, bytes + TCP_CONTROL_SIZE);
    post(side, tagged(OFP_TSEND, peer, 5, "a", 1, 2));
    ours = raw_accept(side, listener, &control, &rdm);
    second = raw_connect(side);
    raw_write(second, bytes, 8);
    progress(side);
    /* Fails, since there is nothing to read. */
    broken.writev = broken.readv;
    OFP_CONTAINER_OF(connections->previous, struct tcp_connection, node)->stream.ops = &broken;
    raw_write(second, bytes + 8, sizeof(bytes) - 8);
    raw_is_dropped(side, second);
    fd = raw_accept(side, listener, &control, &rdm);
    raw_answer(fd, TCP_CONNRESP, rdm, NULL);
    assert_int_equal(raw_next(side, fd, &byte).tag, 5);
    assert_int_equal(next_completion(side, NULL).error, 0);
    close(ours);
    close(fd);
    close(listener);
}

/* ------------------------------------------------------------------------------------------------- what we ask of it */

/* A stock peer repeats the flags of a read request in its answer, and would wait for what they ask for. */
static void test_flags_of_requests(void **state)
{
    static const struct {
        uint16_t op, expected_op;
        uint64_t flags;
        uint16_t expected;
    } rows[] = {
        {OFP_READ, TCP_READ_REQ, 0, 0},
        {OFP_READ, TCP_READ_REQ, OFP_TRANSMIT_COMPLETE, 0},
        {OFP_READ, TCP_READ_REQ, OFP_DELIVERY_COMPLETE, 0},
        {OFP_WRITE, TCP_WRITE, 0, 0},
        {OFP_WRITE, TCP_WRITE, OFP_TRANSMIT_COMPLETE, TCP_FLAG_DELIVERY},
        {OFP_WRITE, TCP_WRITE, OFP_REMOTE_CQ_DATA, TCP_FLAG_CQ_DATA},
        {OFP_TSEND, TCP_TAG, 0, 0},
        {OFP_TSEND, TCP_TAG, OFP_INJECT, 0},
        {OFP_TSEND, TCP_TAG, OFP_TRANSMIT_COMPLETE, TCP_FLAG_DELIVERY},
        {OFP_TSEND, TCP_TAG, OFP_DELIVERY_COMPLETE | OFP_REMOTE_CQ_DATA, TCP_FLAG_DELIVERY | TCP_FLAG_CQ_DATA},
        {OFP_SEND, TCP_MSG, OFP_MATCH_COMPLETE, TCP_FLAG_DELIVERY},
    };
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    int fd = raw_meet(side);
    char memory[8], payload[8];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ofp_operation op = tagged(rows[i].op, peer, 1, memory, 8, i);
        struct tcp_header header;

        op.flags = rows[i].flags;
        op.remote_key = 9;
        post(side, op);
        header = raw_next(side, fd, payload);
        assert_int_equal(header.op, rows[i].expected_op);
        assert_int_equal(header.op_data, 0);
        assert_int_equal(header.flags, rows[i].expected);
        if (header.op == TCP_READ_REQ)
            raw_send(fd, (struct tcp_header){.op = TCP_READ_RSP, .remote_count = 1, .payload = 8}, memory, 8);
        if (header.flags & TCP_FLAG_DELIVERY)
            raw_send(fd, (struct tcp_header){.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK}, NULL, 0);
        if (!(rows[i].flags & OFP_INJECT))
            assert_int_equal(next_completion(side, NULL).context, i);
    }
    close(fd);
}

/* Who does not know rendezvous has no way to tell that a tagged message was matched; nobody has one for atomics. */
static void test_what_it_does_not_support(void **state)
{
    struct tcp_rdm request = {.version = 0, .port = RAW_PORT, .pid = RAW_PID};
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    struct ofp_operation match = tagged(OFP_TSEND, peer, 1, "abc", 3, 1);
    struct ofp_operation atomic = tagged(OFP_ATOMIC, peer, 0, (uint64_t[]){1}, 8, 2);
    uint8_t answer[REQUEST_SIZE];
    int fd = raw_connect(side);
    char room[8];

    raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &request);
    assert_true(raw_read(side, fd, answer, sizeof(answer)));
    match.flags = OFP_MATCH_COMPLETE;
    assert_int_equal(ofp_post(side->endpoint, &match, 1), -EOPNOTSUPP);
    atomic.atomic_op = OFP_ATOMIC_SUM;
    atomic.datatype = OFP_UINT64;
    atomic.remote_key = 9;
    assert_int_equal(ofp_post(side->endpoint, &atomic, 1), -EOPNOTSUPP);
    match.op = OFP_SEND;
    post(side, match);
    assert_int_equal(raw_next(side, fd, room).flags, TCP_FLAG_DELIVERY);
    raw_send(fd, (struct tcp_header){.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK}, NULL, 0);
    assert_int_equal(next_completion(side, NULL).error, 0);
    close(fd);
}

/* ------------------------------------------------------------------------------------------ what outlives a connection */

/* What it announced goes with the connection: it is not cleared on the next one, where its id may mean another. */
static void test_an_announcement_of_an_earlier_connection(void **state)
{
    struct tcp_header announcement = {.op = TCP_TAG_RTS, .op_data = 5, .tag = 1, .length = 3};
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    struct tcp_header header;
    int first = raw_meet(side), second;
    struct ofp_completion row;
    char room[8];

    announcement.flags = TCP_FLAG_DELIVERY;
    raw_send(first, announcement, NULL, 0);
    progress(side);
    second = raw_meet(side);
    raw_is_dropped(side, first);
    post(side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, room, 8, 1));
    raw_is_silent(side, second);
    raw_send(second, (struct tcp_header){.op = TCP_TAG, .tag = 1, .flags = TCP_FLAG_DELIVERY, .payload = 3}, "new", 3);
    row = next_completion(side, NULL);
    assert_int_equal(row.error, 0);
    assert_memory_equal(room, "new", 3);
    header = raw_next(side, second, room);
    assert_true(tcp_header_is_ack(&header));
    /* Cleared, and the connection goes: the receive ends, and nobody hears of the payload that never came. */
    post(side, tagged(OFP_TRECV, peer, 2, room, 8, 2));
    announcement.tag = 2;
    raw_send(second, announcement, NULL, 0);
    assert_int_equal(raw_next(side, second, room).op, TCP_CTS);
    first = raw_meet(side);
    raw_is_dropped(side, second);
    assert_int_not_equal(next_completion(side, NULL).error, 0);
    raw_is_silent(side, first);
    close(first);
}

/* A clearance that comes too late, on the next connection, is no clearance of what was announced there. */
static void test_numbers_of_an_earlier_connection(void **state)
{
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    struct ofp_operation send = tagged(OFP_TSEND, peer, 1, "abc", 3, 1);
    struct tcp_header old, new;
    int first = raw_meet(side), second;
    char room[8];

    send.flags = OFP_MATCH_COMPLETE;
    post(side, send);
    old = raw_next(side, first, room);
    assert_int_equal(old.op, TCP_TAG_RTS);
    second = raw_meet(side);
    raw_is_dropped(side, first);
    assert_int_not_equal(next_completion(side, NULL).error, 0);
    post(side, send);
    new = raw_next(side, second, room);
    assert_int_equal(new.op, TCP_TAG_RTS);
    assert_int_not_equal(new.op_data, old.op_data);
    raw_send(second, (struct tcp_header){.op = TCP_CTS, .op_data = old.op_data}, NULL, 0);
    raw_is_silent(side, second);
    raw_send(second, (struct tcp_header){.op = TCP_CTS, .op_data = new.op_data}, NULL, 0);
    assert_int_equal(raw_next(side, second, room).op, TCP_DATA);
    raw_send(second, (struct tcp_header){.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK}, NULL, 0);
    assert_int_equal(next_completion(side, NULL).error, 0);
    close(second);
}

/* --------------------------------------------------------------------------------------------- long tagged messages */

/* As stock senders count: all bytes of the message, the header's too. `variable` says what, or nothing does. */
static void exchange_long(const char *variable, const char *value, bool understood, bool expected)
{
    struct side side;
    struct tcp_control control;
    struct tcp_rdm rdm;
    struct tcp_header header;
    struct ofp_operation send;
    uint32_t peer;
    int listener, fd;
    static char data[20000], room[20000];

    setenv(variable, value, 1);
    tcp_side_open(&side);
    unsetenv(variable);
    listener = raw_listen(&side, true, &peer);
    memset(data, 'x', sizeof(data));
    post(&side, tagged(OFP_TSEND, peer, 1, data, 16360, 1));
    post(&side, tagged(OFP_TSEND, peer, 2, data, 16361, 2));
    send = tagged(OFP_TSEND, peer, 3, data, 16353, 3);
    send.flags = OFP_REMOTE_CQ_DATA | OFP_DELIVERY_COMPLETE;
    send.data = 77;
    post(&side, send);
    fd = raw_accept(&side, listener, &control, &rdm);
    rdm.version = understood ? TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD : 0;
    raw_answer(fd, TCP_CONNRESP, rdm, NULL);
    header = raw_next(&side, fd, room);
    assert_int_equal(header.op, TCP_TAG);
    for (uint64_t tag = 2; tag <= 3; tag++) {
        header = raw_next(&side, fd, room);
        assert_int_equal(header.op, expected ? TCP_TAG_RTS : TCP_TAG);
        assert_int_equal(header.tag, tag);
        assert_int_equal(!!(header.flags & TCP_FLAG_DELIVERY), tag == 3);
        if (!expected)
            continue;
        assert_int_equal(header.length, tag == 2 ? 16361 : 16353);
        raw_send(fd, (struct tcp_header){.op = TCP_CTS, .op_data = header.op_data}, NULL, 0);
    }
    for (int i = 0; expected && i < 2; i++) {
        uint16_t flags = i ? TCP_FLAG_DELIVERY | TCP_FLAG_CQ_DATA : 0;

        header = raw_next(&side, fd, room);
        assert_int_equal(header.op, TCP_DATA);
        assert_int_equal(header.flags, flags);
        assert_int_equal(header.payload, i ? 16353 : 16361);
        assert_memory_equal(room, data, header.payload);
    }
    /* Only what asked for an acknowledgement waits for one. */
    for (uint64_t context = 1; context <= 2; context++)
        assert_int_equal(next_completion(&side, NULL).context, context);
    raw_send(fd, (struct tcp_header){.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK}, NULL, 0);
    assert_int_equal(next_completion(&side, NULL).context, 3);
    close(fd);
    close(listener);
    side_close(&side);
}

static void test_long_tagged_messages(void **state)
{
    (void)state;
    exchange_long("OFIPY_TCP_RENDEZVOUS_SIZE", "16k", true, true);
    exchange_long("FI_TCP_MAX_SAVED_SIZE", "16384", true, true);
    /* Nobody says so, or nobody can, or the peer cannot. */
    exchange_long("FI_TCP_MAX_SAVED_SIZE", "", true, false);
    exchange_long("FI_TCP_MAX_SAVED_SIZE", "much", true, false);
    exchange_long("FI_TCP_MAX_SAVED_SIZE", "16384", false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_tagged_messages),
        cmocka_unit_test_setup_teardown(test_a_request_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_ask_and_the_peer_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_ask_and_we_win, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_request_waits_for_a_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_winner_goes_before_our_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flags_of_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_it_does_not_support, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_announcement_of_an_earlier_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_of_an_earlier_connection, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
