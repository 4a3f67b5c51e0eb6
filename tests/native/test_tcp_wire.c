/* SPDX-License-Identifier: BSD-3-Clause */
/* The codec: what libfabric sent is read and written byte for byte, and nothing else is taken for a message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tcp_vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t unhex(const char *text, uint8_t *bytes)
{
    size_t length = strlen(text) / 2;

    for (size_t i = 0; i < length; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], 0};

        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return length;
}

static void test_control_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(control_vectors); i++) {
        const struct control_vector *vector = &control_vectors[i];
        uint8_t bytes[TCP_CONTROL_SIZE], written[TCP_CONTROL_SIZE], private_data[TCP_PRIVATE_MAX];
        size_t private_size = unhex(vector->private_data, private_data);
        struct tcp_control control;

        assert_int_equal(unhex(vector->bytes, bytes), TCP_CONTROL_SIZE);
        assert_int_equal(tcp_control_decode(bytes, &control), 0);
        assert_int_equal(control.type, vector->type);
        assert_int_equal(control.private_size, vector->private_size);
        assert_int_equal(control.private_size, private_size);
        assert_int_equal(control.swapped, vector->swapped);
        assert_int_equal(control.magic, 0);
        assert_int_equal(control.capabilities, 0);
        tcp_control_encode(&control, written);
        /* Nobody of ours asks for the other byte order. */
        if (!vector->swapped || vector->type == TCP_NACK)
            assert_memory_equal(bytes, written, sizeof(bytes));
        if (vector->rdm.pid) {
            struct tcp_rdm rdm;

            tcp_rdm_decode(private_data, &rdm);
            assert_memory_equal(&rdm, &vector->rdm, sizeof(rdm));
            tcp_rdm_encode(&rdm, written);
            assert_memory_equal(private_data, written, TCP_RDM_SIZE);
        }
    }
}

static void test_wrong_control_messages(void **state)
{
    uint8_t bytes[TCP_CONTROL_SIZE], changed[TCP_CONTROL_SIZE];
    struct tcp_control control = {
        .type = TCP_CONNREQ, .private_size = 256, .magic = 0x0102030405060708, .capabilities = 42};

    (void)state;
    tcp_control_encode(&control, bytes);
    assert_int_equal(tcp_control_decode(bytes, &control), 0);
    assert_int_equal(control.private_size, 256);
    assert_int_equal(control.magic, 0x0102030405060708);
    assert_int_equal(control.capabilities, 42);
    assert_int_equal(bytes[8], 8);
    assert_false(control.swapped);
    memcpy(changed, bytes, sizeof(bytes));
    changed[0] = 4;
    assert_int_equal(tcp_control_decode(changed, &control), -EPROTONOSUPPORT);
    for (unsigned type = 0; type < 256; type++) {
        bool known = type == TCP_CONNREQ || type == TCP_CONNRESP || type == TCP_NACK;

        memcpy(changed, bytes, sizeof(bytes));
        changed[1] = (uint8_t)type;
        assert_int_equal(tcp_control_decode(changed, &control), known ? 0 : -EPROTO);
    }
    memcpy(changed, bytes, sizeof(bytes));
    changed[3] = 1;
    assert_int_equal(tcp_control_decode(changed, &control), -EPROTO);
}

static void check_header(const struct tcp_header *got, const struct tcp_header *expected)
{
    assert_int_equal(got->op, expected->op);
    assert_int_equal(got->op_data, expected->op_data);
    assert_int_equal(got->flags, expected->flags);
    assert_int_equal(got->remote_count, expected->remote_count);
    assert_int_equal(got->header_size, expected->header_size);
    assert_int_equal(got->payload, expected->payload);
    assert_int_equal(got->data, expected->data);
    assert_int_equal(got->tag, expected->tag);
    assert_int_equal(got->length, expected->length);
    assert_memory_equal(got->remote, expected->remote, got->remote_count * sizeof(got->remote[0]));
}

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(header_vectors); i++) {
        const struct header_vector *vector = &header_vectors[i];
        uint8_t bytes[TCP_HEADER_MAX], written[TCP_HEADER_MAX];
        size_t size = unhex(vector->bytes, bytes);
        struct tcp_header header;

        assert_int_equal(tcp_header_decode_length(bytes), size);
        assert_null(tcp_header_decode(bytes, vector->swapped, false, &header));
        check_header(&header, &vector->header);
        header.remote_count = vector->count_byte;
        assert_int_equal(tcp_header_encode(&header, bytes[7], vector->swapped, written), size);
        assert_memory_equal(bytes, written, size);
    }
}

/* Every operation, with and without remote cq data, in both byte orders. */
static void test_round_trips(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TCP_OPS * 4; i++) {
        bool swapped = i & 1;
        struct tcp_header header = {.op = (uint8_t)(i / 4),
                                    .flags = i & 2 ? TCP_FLAG_CQ_DATA : 0,
                                    .remote_count = 2,
                                    .tag = UINT64_MAX - 7,
                                    .data = 0x123456789abcdef0,
                                    .length = INT64_MAX - 3,
                                    .words = {1, 2, 3, 4, UINT64_MAX},
                                    .remote = {{1, 30, UINT64_MAX}, {2, 12, 4}}};
        struct tcp_header got;
        uint8_t bytes[TCP_HEADER_MAX], again[TCP_HEADER_MAX];
        size_t size;

        header.op_data = header.op == TCP_ATOMIC ? OFP_COMPARE_ATOMIC : 0;
        if (header.op == TCP_WRITE)
            header.payload = 42;
        if (header.op == TCP_ATOMIC)
            header.payload = 84;
        size = tcp_header_encode(&header, 77, swapped, bytes);
        assert_int_equal(tcp_header_decode_length(bytes), size);
        assert_int_equal(bytes[7], 77);
        assert_null(tcp_header_decode(bytes, swapped, true, &got));
        got.remote_count = 2;
        assert_int_equal(tcp_header_encode(&got, 77, swapped, again), size);
        assert_memory_equal(bytes, again, size);
        /* The extension is refused from whoever did not agree to it. */
        assert_int_equal(tcp_header_decode(bytes, swapped, false, &got) != NULL, header.op >= TCP_STOCK_OPS);
    }
}

static const char *change(const struct tcp_header *header, size_t place, uint8_t value)
{
    uint8_t bytes[TCP_HEADER_MAX];
    struct tcp_header got;

    tcp_header_encode(header, 0, false, bytes);
    bytes[place] = value;
    return tcp_header_decode_length(bytes) ? tcp_header_decode(bytes, false, true, &got) : "length";
}

static void test_wrong_headers(void **state)
{
    struct tcp_header tag = {.op = TCP_TAG, .payload = 5}, ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK},
                      read = {.op = TCP_READ_REQ, .remote_count = 1, .remote = {{0, 8, 1}}},
                      write = {.op = TCP_WRITE, .remote_count = 2, .payload = 8, .remote = {{0, 4, 1}, {9, 4, 1}}};

    (void)state;
    /* The version was agreed before; a receiver does not look at it. */
    assert_null(change(&tag, 0, 9));
    assert_null(change(&tag, 5, 200));
    assert_null(change(&tag, 7, 200));
    assert_null(change(&tag, 3, 0xff)); /* flags that nobody knows */
    assert_non_null(change(&tag, 1, TCP_OPS));
    assert_non_null(change(&tag, 1, 255));
    for (unsigned size = 0; size < 256; size++)
        assert_int_equal(change(&tag, 6, (uint8_t)size) == NULL, size == 24);
    assert_non_null(change(&tag, 8, 23));
    assert_non_null(change(&tag, 15, 0x80));
    /* The header would have to be 8 bytes longer. */
    assert_non_null(change(&tag, 2, TCP_FLAG_CQ_DATA));
    assert_null(change(&ack, 2, TCP_FLAG_CQ_DATA));
    assert_non_null(change(&ack, 4, 1));
    assert_non_null(change(&ack, 8, 17));
    for (unsigned count = 0; count < 256; count++)
        assert_int_equal(change(&read, 5, (uint8_t)count) == NULL, count == 1);
    assert_non_null(change(&read, 8, 41));
    assert_non_null(change(&write, 8, 64 + 7));
    assert_non_null(change(&write, 8, 64 + 9));
    /* Lengths whose sum is right by overflow. */
    write.remote[0].length = UINT64_MAX;
    write.remote[1].length = 9;
    assert_non_null(change(&write, 0, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_messages), cmocka_unit_test(test_wrong_control_messages),
        cmocka_unit_test(test_headers),          cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_wrong_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
