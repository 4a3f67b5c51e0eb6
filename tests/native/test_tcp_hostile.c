/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken and hostile peers: their connection ends, what they announced is never believed, and everything else goes on. After
 * each test a peer that behaves is served.
 */
#include <sys/resource.h>

#include "test_tcp_fixture.h"

static int setup(void **state)
{
    struct side *side = malloc(sizeof(*side));

    if (!side)
        return -1;
    tcp_side_open(side);
    *state = side;
    return 0;
}

static int setup_impatient(void **state)
{
    int result;

    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    result = setup(state);
    unsetenv("OFIPY_CONNECT_TIMEOUT");
    return result;
}

static int setup_small(void **state)
{
    int result;

    setenv("OFIPY_UNEXPECTED_SIZE", "100000", 1);
    result = setup(state);
    unsetenv("OFIPY_UNEXPECTED_SIZE");
    return result;
}

static int teardown(void **state)
{
    struct side *side = *state;

    serves(side);
    side_close(side);
    free(side);
    return 0;
}

/* -------------------------------------------------------------------------------------------- before it is a peer */

static void test_garbage_in_place_of_a_request(void **state)
{
    struct side *side = *state;
    uint8_t bytes[400];

    for (unsigned seed = 0; seed < 64; seed++) {
        int fd = raw_connect(side);

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(seed * 37 + i * i * (seed + 1));
        raw_write(fd, bytes, sizeof(bytes));
        raw_is_dropped(side, fd);
    }
}

static void test_wrong_requests(void **state)
{
    struct side *side = *state;
    uint8_t good[TCP_CONTROL_SIZE + 256] = {0}, bytes[sizeof(good)];
    static const struct {
        uint8_t place, value;
    } changes[] = {{0, 4}, {0, 0x16}, {1, 1}, {1, 6}, {1, 9}, {2, 2}, {3, 0}, {3, 7}, {3, 24}};
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = TCP_RDM_SIZE};

    tcp_control_encode(&control, good);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        int fd = raw_connect(side);

        memcpy(bytes, good, sizeof(bytes));
        bytes[changes[i].place] = changes[i].value;
        raw_write(fd, bytes, sizeof(bytes));
        raw_is_dropped(side, fd);
    }
}

static void test_other_protocols_are_called_by_name(void **state)
{
    struct side *side = *state;
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = 24};
    uint8_t rxm[TCP_CONTROL_SIZE + 24] = {0};
    int fd;

    forget_warnings();
    tcp_control_encode(&control, rxm);
    fd = raw_connect(side);
    raw_write(fd, rxm, sizeof(rxm));
    raw_is_dropped(side, fd);
    expect_warning("ofi_rxm; use FI_PROVIDER=net");
    /* Its first byte is enough, as it may wait for an answer to less than a request. */
    fd = raw_connect(side);
    raw_write(fd, "\x16", 1);
    raw_is_dropped(side, fd);
    expect_warning("speaks TLS");
    fd = raw_connect(side);
    raw_write(fd, "\x47", 1);
    raw_is_dropped(side, fd);
    expect_warning("another version than 3");
}

/* Whom we asked speaks ofi_rxm: old ones reject with two bytes, others accept with 24. It is not asked again and again. */
static void test_answers_of_another_protocol(void **state)
{
    static const struct {
        enum tcp_control_type type;
        uint16_t size;
    } answers[] = {{TCP_NACK, 2}, {TCP_CONNRESP, 24}};
    struct side *side = *state;

    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct tcp_control control = {.type = (uint8_t)answers[i].type, .private_size = answers[i].size};
        uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX] = {0};
        socklen_t length = sizeof(address);
        uint32_t peer;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

        assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        assert_int_equal(ofp_av_insert(side->av, &address, length, &peer), 0);
        post(side, tagged(OFP_TSEND, peer, 1, "x", 1, 1));
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(raw_read(side, fd, bytes, TCP_CONTROL_SIZE + TCP_RDM_SIZE));
        tcp_control_encode(&control, bytes);
        forget_warnings();
        raw_write(fd, bytes, TCP_CONTROL_SIZE + answers[i].size);
        assert_int_equal(next_completion(side, NULL).error, ECONNREFUSED);
        expect_warning("ofi_rxm; use FI_PROVIDER=net");
        raw_is_dropped(side, fd);
        close(listener);
    }
}

/* It says it listens nowhere, or that it is us. */
static void test_impossible_addresses(void **state)
{
    struct side *side = *state;
    union tcp_address own = address_of(side);
    struct tcp_rdm rdm = {.version = 1, .pid = 5};

    for (int i = 0; i < 2; i++) {
        int fd = raw_connect(side);

        rdm.port = i ? tcp_address_get_port(&own) : 0;
        raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &rdm);
        raw_is_dropped(side, fd);
    }
}

/* A request in pieces of one byte is a request; half of one holds nobody up, and is dropped in time. */
static void test_slow_requests(void **state)
{
    struct side *side = *state;
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE], answer[sizeof(bytes)];
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = TCP_RDM_SIZE};
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    int half = raw_connect(side), slow = raw_connect(side), silent = raw_connect(side);

    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(&rdm, bytes + TCP_CONTROL_SIZE);
    raw_write(half, bytes, TCP_CONTROL_SIZE + 3);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        raw_write(slow, bytes + i, 1);
        ofp_domain_progress(side->domain);
    }
    assert_true(raw_read(side, slow, answer, sizeof(answer)));
    assert_int_equal(answer[1], TCP_CONNRESP);
    serves(side);
    raw_is_dropped(side, half);
    raw_is_dropped(side, silent);
    close(slow);
}

static void test_a_flood_of_connections(void **state)
{
    struct side *side = *state;
    int fds[TCP_UNPROVEN_MAX + 100];
    unsigned open_still = 0;

    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        fds[i] = raw_connect(side);
        ofp_domain_progress(side->domain);
    }
    serves(side);
    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        char byte;

        open_still += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
        close(fds[i]);
    }
    assert_in_range(open_still, 1, TCP_UNPROVEN_MAX);
}

static void test_out_of_descriptors(void **state)
{
    struct side *side = *state;
    struct rlimit before, limit;
    int waiting = raw_connect(side), taken[64], count = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)dup(0) + 1;
    close((int)limit.rlim_cur - 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (count < 64 && (taken[count] = dup(0)) >= 0)
        count++;
    for (int i = 0; i < 100; i++)
        ofp_domain_progress(side->domain);
    while (count)
        close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    serves(side);
    close(waiting);
}

/* ------------------------------------------------------------------------------------------------- when it is one */

static const struct tcp_header ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK};

static void test_what_ends_a_connection(void **state)
{
    struct side *side = *state;
    const struct tcp_header wrong[] = {
        ack,
        {.op = TCP_DATA, .op_data = 3, .payload = 10},
        {.op = TCP_READ_RSP, .payload = 10},
        {.op = TCP_READ_REQ, .remote_count = 1, .remote = {{0, 8, 12345}}},
        {.op = TCP_WRITE, .remote_count = 1, .payload = 8, .remote = {{0, 8, 12345}}},
        {.op = TCP_HELLO},
        {.op = TCP_ANNOUNCE, .length = 5},
        {.op = TCP_INTERNAL, .payload = 8},
        {.op = TCP_ATOMIC, .op_data = OFP_ATOMIC, .remote_count = 1, .payload = 8, .remote = {{0, 8, 1}}},
    };
    uint8_t garbage[256];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int fd = raw_meet(side);

        raw_send(fd, wrong[i], NULL, 0);
        raw_is_dropped(side, fd);
    }
    for (unsigned seed = 0; seed < 64; seed++) {
        int fd = raw_meet(side);

        for (size_t i = 0; i < sizeof(garbage); i++)
            garbage[i] = (uint8_t)(seed * 101 + i * i * (seed | 1) + 0x80);
        garbage[6] = (uint8_t)(seed * 4 + 2);
        raw_write(fd, garbage, sizeof(garbage));
        raw_is_dropped(side, fd);
    }
}

/* The extension's own rules. */
static void test_what_ends_an_extended_connection(void **state)
{
    struct side *side = *state;
    struct tcp_header hello = {.op = TCP_HELLO};
    const struct tcp_header wrong[] = {
        {.op = TCP_HELLO},
        {.op = TCP_PROOF},
        {.op = TCP_PULL, .words = {1, 2, 3}},
        {.op = TCP_PULL, .words = {UINT64_MAX, 2, 3}},
        {.op = TCP_REFUSED, .op_data = TCP_REFUSED_ACK, .words = {5}},
        {.op = TCP_REFUSED, .op_data = TCP_REFUSED_ANSWER, .words = {5}},
        {.op = TCP_REFUSED, .op_data = 9},
        {.op = TCP_FETCHED, .payload = 8},
        {.op = TCP_CREDIT, .words = {UINT64_MAX}},
        {.op = TCP_ATOMIC, .op_data = 3, .remote_count = 1, .payload = 8, .remote = {{0, 8, 1}}},
        {.op = TCP_ATOMIC,
         .op_data = OFP_ATOMIC,
         .remote_count = 1,
         .payload = 2 * TCP_ATOMIC_MAX,
         .remote = {{0, 2 * TCP_ATOMIC_MAX, 1}}},
        {.op = TCP_TAG, .payload = UINT32_MAX},
        ack,
    };
    int fd = raw_meet_extended(side);

    /* No greeting. */
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .payload = 1}, "x", 1);
    raw_is_dropped(side, fd);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        fd = raw_meet_extended(side);
        raw_send(fd, hello, NULL, 0);
        raw_send(fd, wrong[i], NULL, 0);
        raw_is_dropped(side, fd);
    }
}

/* It was granted so much, and sends more. */
static void test_more_than_was_granted(void **state)
{
    struct side *side = *state;
    int fd = raw_meet_extended(side);
    static const char payload[60000];

    raw_send(fd, (struct tcp_header){.op = TCP_HELLO}, NULL, 0);
    for (int i = 0; i < 20; i++) {
        struct tcp_header header = {.op = TCP_TAG, .payload = sizeof(payload)};
        uint8_t bytes[TCP_HEADER_MAX];
        size_t size = tcp_header_encode(&header, 0, false, bytes);

        if (send(fd, bytes, size, MSG_NOSIGNAL) < 0 || send(fd, payload, sizeof(payload), MSG_NOSIGNAL) < 0)
            break;
        ofp_domain_progress(side->domain);
    }
    raw_is_dropped(side, fd);
}

/* Cut off in the middle: the receive that was being filled ends, the next message is received. */
static void test_a_message_cut_off(void **state)
{
    struct side *side = *state;
    static char room[100000];
    uint32_t peer = raw_peer(side);
    int fd = raw_meet(side);
    struct ofp_completion row;

    post(side, tagged(OFP_TRECV, peer, 1, room, sizeof(room), 1));
    post(side, tagged(OFP_TRECV, OFP_PEER_ANY, 2, room, sizeof(room), 2));
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 1, .payload = sizeof(room)}, room, 5000);
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 2, .payload = 5}, NULL, 0);
    for (int i = 0; i < 10; i++)
        ofp_domain_progress(side->domain);
    close(fd);
    row = next_completion(side, NULL);
    assert_int_equal(row.context, 1);
    assert_int_not_equal(row.error, 0);
    fd = raw_meet(side);
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 2, .payload = 5}, "hello", 5);
    row = next_completion(side, NULL);
    assert_int_equal(row.context, 2);
    assert_int_equal(row.error, 0);
    assert_memory_equal(room, "hello", 5);
    close(fd);
}

/* Only what was announced comes in memory; the announcement of exabytes costs nothing. */
static void test_impossible_lengths(void **state)
{
    struct side *side = *state;
    int fd = raw_meet(side);
    char byte;

    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .payload = INT64_MAX / 2}, "x", 1);
    for (int i = 0; i < 100; i++)
        ofp_domain_progress(side->domain);
    /* It waits for a receive that has room. */
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    serves(side);
    close(fd);
}

/* A stock peer floods with what nobody receives: it is not read beyond the bound. */
static void test_a_flood_of_messages(void **state)
{
    struct side *side = *state;
    struct ofp_endpoint_statistics statistics;
    int fd = raw_meet(side);
    static const char payload[10000];
    uint64_t sent = 0;
    ssize_t result;

    for (;;) {
        struct tcp_header header = {.op = TCP_TAG, .payload = sizeof(payload)};
        uint8_t bytes[TCP_HEADER_MAX + sizeof(payload)] = {0};
        size_t size = tcp_header_encode(&header, 0, false, bytes) + sizeof(payload);

        result = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        for (int i = 0; i < 5; i++)
            ofp_domain_progress(side->domain);
        if (result != (ssize_t)size)
            break;
        sent += size;
        assert_true(sent < 100000000);
    }
    assert_int_equal(ofp_endpoint_statistics(side->endpoint, &statistics), 0);
    assert_true(statistics.unexpected_bytes <= 100000);
    close(fd);
}

/* It asks and asks, and reads no answer: it is asked to wait, too. */
static void test_a_slow_reader(void **state)
{
    struct side *side = *state;
    static char memory[1 << 16];
    struct ofp_region_attr attr = {.base = memory, .length = sizeof(memory), .access = OFP_ACCESS_REMOTE_READ};
    struct ofp_region_handle region;
    struct tcp_header header = {.op = TCP_READ_REQ, .remote_count = 1};
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size, sent = 0;
    int fd = raw_meet(side);

    assert_int_equal(ofp_region_register(side->domain, &attr, &region), 0);
    header.remote[0] = (struct ofp_remote_segment){region.remote_base, sizeof(memory), region.key};
    size = tcp_header_encode(&header, 0, false, bytes);
    for (;;) {
        ssize_t result = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        ofp_domain_progress(side->domain);
        if (result != (ssize_t)size)
            break;
        sent += size;
        assert_true(sent < 50000000);
    }
    serves(side);
    close(fd);
    for (int i = 0; i < 200; i++)
        ofp_domain_progress(side->domain);
    assert_int_equal(ofp_region_close(side->domain, region.id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_garbage_in_place_of_a_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_protocols_are_called_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_of_another_protocol, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_requests, setup_impatient, teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_of_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_ends_a_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_ends_an_extended_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_was_granted, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_message_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_of_messages, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_reader, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
