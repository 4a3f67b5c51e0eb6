/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint says to a stock peer, byte by byte: the rules that libfabric's receivers do not forgive. */
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

static int teardown(void **state)
{
    struct side *side = *state;

    side_close(side);
    free(side);
    return 0;
}

/* The next message, whose number must be *id; its payload goes into `payload`. */
static struct tcp_header raw_next(struct side *side, int fd, bool swapped, uint8_t *id, void *payload)
{
    uint8_t bytes[TCP_HEADER_MAX];
    struct tcp_header header;

    assert_true(raw_read(side, fd, bytes, TCP_HEADER_BASE));
    assert_true(raw_read(side, fd, bytes + TCP_HEADER_BASE, tcp_header_decode_length(bytes) - TCP_HEADER_BASE));
    assert_null(tcp_header_decode(bytes, swapped, false, &header));
    assert_int_equal(bytes[7], (*id)++);
    if (header.payload)
        assert_true(raw_read(side, fd, payload, header.payload));
    return header;
}

static void test_answers_to_requests(void **state)
{
    static const uint8_t versions[][2] = {{0, 0}, {1, 0x81}, {5, 0x81}, {0x81, 0x81}};
    struct side *side = *state;

    for (unsigned i = 0; i < 4; i++) {
        struct tcp_rdm request = {.version = versions[i][0], .features = 0xfe, .port = 900, .pid = i + 1}, rdm;
        uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE];
        struct tcp_control control;
        int fd = raw_connect(side);

        raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &request);
        assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
        assert_int_equal(tcp_control_decode(bytes, &control), 0);
        tcp_rdm_decode(bytes + TCP_CONTROL_SIZE, &rdm);
        assert_int_equal(control.type, TCP_CONNRESP);
        assert_false(control.swapped);
        /* Nothing of ours to who did not offer it. */
        assert_int_equal(control.magic, 0);
        assert_int_equal(rdm.version, versions[i][1]);
        assert_int_equal(rdm.features, 0);
        assert_int_equal(rdm.port, 900);
        assert_int_equal(rdm.pid, getpid());
        close(fd);
    }
}

/* One acknowledgement for each message that wants one, none for any other, numbered with all the rest. */
static void test_acknowledgements_and_numbers(void **state)
{
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    int fd = raw_meet(side);
    uint8_t id = 0;
    char room[8];

    for (unsigned i = 0; i < 300; i++) {
        raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 1, .payload = 3}, "abc", 3);
        raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 1, .flags = i % 2 ? 4 : 12, .payload = 3}, "abc", 3);
        raw_send(fd, (struct tcp_header){.op = TCP_MSG, .flags = TCP_FLAG_DELIVERY}, NULL, 0);
        for (int k = 0; k < 2; k++) {
            struct tcp_header header = raw_next(side, fd, false, &id, room);

            assert_true(tcp_header_is_ack(&header));
            assert_int_equal(header.flags, 0);
        }
        post(side, tagged(OFP_TSEND, peer, 9, "hi", 2, 1));
        assert_int_equal(raw_next(side, fd, false, &id, room).op, TCP_TAG);
    }
    close(fd);
}

/* An answer to a read repeats the request's count and brings nothing but the bytes. */
static void test_reads_and_writes(void **state)
{
    struct side *side = *state;
    static char memory[20000];
    struct ofp_region_attr attr = {
        .base = memory, .length = sizeof(memory), .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};
    struct ofp_region_handle region;
    struct tcp_header request = {.op = TCP_READ_REQ, .remote_count = 2}, answer;
    static char room[20000];
    uint8_t id = 0;
    int fd = raw_meet(side);

    assert_int_equal(ofp_region_register(side->domain, &attr, &region), 0);
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (char)(i * 3);
    request.remote[0] = (struct ofp_remote_segment){10, 6000, region.key};
    request.remote[1] = (struct ofp_remote_segment){0, 10, region.key};
    raw_send(fd, request, NULL, 0);
    answer = raw_next(side, fd, false, &id, room);
    assert_int_equal(answer.op, TCP_READ_RSP);
    assert_int_equal(answer.payload, 6010);
    assert_memory_equal(room, memory + 10, 6000);
    assert_memory_equal(room + 6000, memory, 10);
    request.op = TCP_WRITE;
    request.flags = TCP_FLAG_DELIVERY;
    request.payload = 6010;
    memset(room, 7, 6010);
    raw_send(fd, request, room, 6010);
    answer = raw_next(side, fd, false, &id, room);
    assert_true(tcp_header_is_ack(&answer));
    assert_int_equal(memory[0], 7);
    assert_int_equal(memory[6009], 7);
    assert_int_equal(memory[6010], (char)(6010 * 3));
    close(fd);
    for (int i = 0; i < 10; i++)
        ofp_domain_progress(side->domain);
    assert_int_equal(ofp_region_close(side->domain, region.id), 0);
}

/* A host of the other byte order: no rendezvous, and every number the other way round. */
static void test_the_other_byte_order(void **state)
{
    struct side *side = *state;
    uint8_t request[TCP_CONTROL_SIZE + TCP_RDM_SIZE] = {0}, answer[sizeof(request)], bytes[TCP_HEADER_MAX];
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = TCP_RDM_SIZE};
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    struct tcp_header header = {.op = TCP_TAG, .flags = 5, .payload = 5, .tag = 0x77, .data = 0x1122};
    uint32_t peer = raw_peer(side);
    struct ofp_completion row;
    char room[8];
    uint8_t id = 0;
    int fd = raw_connect(side);

    tcp_control_encode(&control, request);
    memset(request + 24, 0, 8);
    request[31] = 1;
    tcp_rdm_encode(&rdm, request + TCP_CONTROL_SIZE);
    raw_write(fd, request, sizeof(request));
    assert_true(raw_read(side, fd, answer, sizeof(answer)));
    assert_int_equal(answer[TCP_CONTROL_SIZE], 0);
    post(side, tagged(OFP_TRECV, peer, 0x77, room, 8, 1));
    raw_write(fd, bytes, tcp_header_encode(&header, 0, true, bytes));
    raw_write(fd, "hello", 5);
    row = next_completion(side, NULL);
    assert_int_equal(row.data, 0x1122);
    assert_int_equal(row.length, 5);
    header = raw_next(side, fd, true, &id, room);
    assert_true(tcp_header_is_ack(&header));
    post(side, tagged(OFP_TSEND, peer, 0x55, "BBB", 3, 1));
    header = raw_next(side, fd, true, &id, room);
    assert_int_equal(header.tag, 0x55);
    assert_memory_equal(room, "BBB", 3);
    close(fd);
}

/* A late clearance of an earlier connection is no reason to end this one. */
static void test_a_stray_clearance(void **state)
{
    struct side *side = *state;
    int fd = raw_meet(side);
    uint8_t id = 0;
    char room[8];

    raw_send(fd, (struct tcp_header){.op = TCP_CTS, .op_data = 9}, NULL, 0);
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .flags = TCP_FLAG_DELIVERY}, NULL, 0);
    assert_int_equal(raw_next(side, fd, false, &id, room).op_data, TCP_OP_DATA_ACK);
    close(fd);
}

/* The same process asks again: it has lost the connection. Another process: the peer was started anew. */
static void test_asking_again(void **state)
{
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    struct tcp_control control;
    struct tcp_rdm rdm;
    int first = raw_meet(side), second, third;
    char room[8];
    uint8_t id = 0;

    second = raw_meet_as(side, RAW_PORT, RAW_PID, 0, &control, &rdm);
    assert_int_equal(control.type, TCP_CONNRESP);
    raw_is_dropped(side, first);
    post(side, tagged(OFP_TRECV, peer, 1, room, 8, 1));
    third = raw_meet_as(side, RAW_PORT, RAW_PID + 1, 0, &control, &rdm);
    assert_int_equal(control.type, TCP_CONNRESP);
    raw_is_dropped(side, second);
    assert_int_equal(next_completion(side, NULL).error, OFP_EPEERLOST);
    post(side, tagged(OFP_TSEND, peer, 2, "x", 1, 2));
    assert_int_equal(raw_next(side, third, false, &id, room).tag, 2);
    close(third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers_to_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_acknowledgements_and_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_and_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_other_byte_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stray_clearance, setup, teardown),
        cmocka_unit_test_setup_teardown(test_asking_again, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
