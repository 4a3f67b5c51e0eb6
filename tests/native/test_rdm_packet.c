/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of native/rdm: what is written is read as it was; what is cut, damaged or impossible is refused, and
 * nothing beyond it is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <errno.h>
#include <string.h>

#include "ofipy/operation.h"
#include "rdm/transfer/packet.h"

#define PAYLOAD 48

static const struct ofpi_rdm_piece three[] = {{4096, 16, 7}, {8192, 0, 8}, {1 << 20, 32, UINT64_MAX}};

/* One of each kind, as full as it gets. */
static struct ofpi_rdm_packet sample(enum ofpi_rdm_kind kind)
{
    bool message = kind == OFPI_RDM_EAGER || kind == OFPI_RDM_ANNOUNCE;
    bool pieces = kind == OFPI_RDM_ANNOUNCE || kind == OFPI_RDM_PULL || kind == OFPI_RDM_REMOTE;
    struct ofpi_rdm_packet packet = {
        .kind = (uint8_t)kind,
        .channel = message ? OFP_CHANNEL_INTERNAL : 0,
        .count = pieces ? 3 : 0,
        .op = OFP_WRITE,
        .tag = 0x1122334455667788,
        .data = 0x99aabbccddeeff00,
        .id = 0x0123456789abcdef,
        .receive = 0xfedcba9876543210,
        .length = PAYLOAD,
        .error = 5,
        .reason = 6,
    };

    if (message || kind == OFPI_RDM_REMOTE)
        packet.flags = OFPI_RDM_HAS_DATA;
    if (pieces)
        memcpy(packet.pieces, three, sizeof(three));
    return packet;
}

static bool has_payload(enum ofpi_rdm_kind kind)
{
    return kind == OFPI_RDM_EAGER || kind == OFPI_RDM_DATA || kind == OFPI_RDM_REMOTE || kind == OFPI_RDM_ANSWER;
}

/* Returns its length. */
static uint32_t write_sample(enum ofpi_rdm_kind kind, uint8_t *bytes)
{
    const struct ofpi_rdm_packet packet = sample(kind);
    const uint16_t credits[2] = {0x1234, 0x5678};
    uint32_t length = ofpi_rdm_encode(&packet, bytes);

    assert_int_equal(length, ofpi_rdm_header_compute_size(kind, packet.count));
    ofpi_rdm_encode_credits(bytes, credits, true);
    if (!has_payload(kind))
        return length;
    memset(bytes + length, 0xa5, PAYLOAD);
    return length + PAYLOAD;
}

/* From a buffer of exactly this length, so that a read beyond is found. */
static const char *decode(const uint8_t *bytes, uint32_t length, struct ofpi_rdm_packet *packet)
{
    uint8_t *exact = malloc(length ? length : 1);
    const char *wrong;

    assert_non_null(exact);
    if (length)
        memcpy(exact, bytes, length);
    wrong = ofpi_rdm_decode(exact, length, packet);
    packet->payload = NULL;
    free(exact);
    return wrong;
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    for (int kind = 0; kind < OFPI_RDM_KINDS; kind++) {
        uint8_t bytes[512], again[512] = {0};
        uint32_t length = write_sample(kind, bytes), header;
        struct ofpi_rdm_packet packet;

        assert_null(decode(bytes, length, &packet));
        assert_int_equal(packet.kind, kind);
        assert_int_equal(packet.credits[0], 0x1234);
        assert_int_equal(packet.credits[1], 0x5678);
        assert_true(packet.flags & OFPI_RDM_FULL);
        assert_int_equal(packet.payload_length, has_payload(kind) ? PAYLOAD : 0);
        header = ofpi_rdm_encode(&packet, again);
        ofpi_rdm_encode_credits(again, packet.credits, true);
        assert_int_equal(header, length - packet.payload_length);
        assert_memory_equal(bytes, again, header);
    }
}

static void test_every_cut_is_refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < OFPI_RDM_KINDS; kind++) {
        uint8_t bytes[513] = {0};
        uint32_t length = write_sample(kind, bytes);
        struct ofpi_rdm_packet packet;

        for (uint32_t cut = 0; cut < length; cut++) {
            const char *wrong = decode(bytes, cut, &packet);

            /* Payloads that are as long as they are: only a shorter header is wrong. */
            if (kind == OFPI_RDM_REMOTE || cut < ofpi_rdm_header_compute_size(kind, sample(kind).count))
                assert_non_null(wrong);
        }
        if (!has_payload(kind) || kind == OFPI_RDM_REMOTE)
            assert_non_null(decode(bytes, length + 1, &packet));
    }
}

static void check_refused(struct ofpi_rdm_packet packet, uint32_t payload)
{
    uint8_t bytes[512] = {0};
    uint32_t length = ofpi_rdm_encode(&packet, bytes) + payload;

    assert_non_null(decode(bytes, length, &packet));
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct ofpi_rdm_packet packet;

    (void)state;
    packet = sample(OFPI_RDM_EAGER);
    packet.channel = OFP_CHANNEL_INTERNAL + 1;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_DONE);
    packet.channel = 1;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_DONE);
    packet.error = -1;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_EAGER);
    packet.flags = OFPI_RDM_LAST;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_ANNOUNCE);
    packet.length++;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_ANNOUNCE);
    packet.pieces[0].length = packet.pieces[1].length = UINT64_MAX / 2 + 1;
    packet.pieces[2].length = packet.length;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_PULL);
    packet.pieces[0].address = UINT64_MAX - 4;
    check_refused(packet, 0);
    packet = sample(OFPI_RDM_REMOTE);
    packet.op = OFP_SEND;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.op = 200;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.offset = 1;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.offset = UINT64_MAX;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.op = OFP_READ;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.op = OFP_COMPARE_ATOMIC;
    check_refused(packet, PAYLOAD);
    packet = sample(OFPI_RDM_REMOTE);
    packet.count = 0;
    packet.length = 0;
    check_refused(packet, 0);
}

/* Bytes that are not the sender's change: nothing is read beyond, and what is taken for a packet keeps the rules. */
static void test_damage(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[512];
        uint32_t length = write_sample(round % OFPI_RDM_KINDS, bytes);
        struct ofpi_rdm_packet packet;
        uint64_t sum = 0;

        for (int hits = rand() % 4; hits >= 0; hits--)
            bytes[(uint32_t)rand() % (hits ? length : 8)] = (uint8_t)rand();
        length = (uint32_t)rand() % 4 ? length : (uint32_t)rand() % (length + 1);
        if (decode(bytes, length, &packet))
            continue;
        assert_true(packet.kind < OFPI_RDM_KINDS && packet.count <= OFP_SEGMENT_LIMIT);
        assert_true(ofpi_rdm_header_compute_size(packet.kind, packet.count) + packet.payload_length == length);
        for (uint32_t i = 0; i < packet.count; i++)
            sum += packet.pieces[i].length;
        assert_true(packet.kind != OFPI_RDM_REMOTE || packet.offset + packet.length <= sum);
    }
}

static void test_hello(void **state)
{
    struct ofpi_rdm_hello hello = {.version = OFPI_RDM_VERSION,
                                   .oldest = OFPI_RDM_OLDEST,
                                   .connects_only = true,
                                   .packet_size = 4096,
                                   .credits = {4, 5},
                                   .incarnation = 99,
                                   .identity = "0123456789abcde"},
                          read;
    uint8_t bytes[OFPI_RDM_HELLO_SIZE + 16] = {0};
    char text[OFP_TEXT_MAX];

    (void)state;
    ofpi_rdm_hello_encode(&hello, bytes);
    /* A device may pad it. */
    assert_int_equal(ofpi_rdm_hello_decode(bytes, sizeof(bytes), &read, text, sizeof(text)), 0);
    assert_int_equal(read.packet_size, 4096);
    assert_int_equal(read.credits[1], 5);
    assert_int_equal(read.incarnation, 99);
    assert_true(read.connects_only);
    assert_memory_equal(read.identity, hello.identity, sizeof(hello.identity));
    for (size_t cut = 0; cut < OFPI_RDM_HELLO_SIZE; cut++)
        assert_int_equal(ofpi_rdm_hello_decode(bytes, cut, &read, text, sizeof(text)), -ECONNREFUSED);
    bytes[4] = bytes[5] = OFPI_RDM_VERSION + 1;
    /* Of the hello of another version no more than 6 bytes are read. */
    assert_int_equal(ofpi_rdm_hello_decode(bytes, 6, &read, text, sizeof(text)), -EPROTONOSUPPORT);
    assert_non_null(strstr(text,
                           "the peer speaks version 2 of the rdm protocol, and this side version 1; update ofipy on "
                           "this side"));
    hello.packet_size = OFPI_RDM_PACKET_MIN - 1;
    ofpi_rdm_hello_encode(&hello, bytes);
    assert_int_equal(ofpi_rdm_hello_decode(bytes, sizeof(bytes), &read, text, sizeof(text)), -ECONNREFUSED);
    bytes[0] ^= 1;
    assert_int_equal(ofpi_rdm_hello_decode(bytes, sizeof(bytes), &read, text, sizeof(text)), -ECONNREFUSED);
    assert_non_null(strstr(text, "another protocol"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_every_cut_is_refused),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_hello),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
