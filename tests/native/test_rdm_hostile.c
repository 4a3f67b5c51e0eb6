/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that does not keep the rules: whatever it sends, it is lost with a sentence that says why or it gets what
 * anybody would get, the endpoint's memory stays its own, and the endpoint goes on with others.
 */
#include "rdm_attacker.h"

static struct ofp_endpoint_statistics read_victim_statistics(struct attacker *attacker)
{
    struct ofp_endpoint_statistics statistics;

    progress(attacker);
    assert_int_equal(ofp_endpoint_statistics(attacker->victim.endpoint, &statistics), 0);
    return statistics;
}

static bool is_lost(struct attacker *attacker) { return read_victim_statistics(attacker).peers_lost == 1; }

/* ------------------------------------------------------------------------------------------------ packets of no use */

/* Each alone, to an endpoint that has asked nothing. */
static void test_packets_out_of_place(void **state)
{
    static const struct ofpi_rdm_packet packets[] = {
        {.kind = OFPI_RDM_PULL, .id = 1, .receive = 2, .length = 3},
        {.kind = OFPI_RDM_DATA, .receive = 1},
        {.kind = OFPI_RDM_PUSHED, .receive = 1},
        {.kind = OFPI_RDM_DONE, .id = 1},
        {.kind = OFPI_RDM_ANSWER, .id = 1},
        {.kind = OFPI_RDM_REMOTE, .op = OFP_READ, .count = 1, .length = ROOM, .pieces = {{0, ROOM, 1}}},
        {.kind = OFPI_RDM_KINDS - 1, .flags = OFPI_RDM_LAST},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
        struct attacker attacker;

        begin(&attacker, RDMFAKE_PACKETS);
        meet(&attacker);
        say_packet(&attacker, &packets[i], packets[i].kind == OFPI_RDM_DATA ? 8 : 0);
        assert_true(is_lost(&attacker));
        expect_warning("peer");
        end(&attacker);
    }
}

static void test_no_packets_at_all(void **state)
{
    static const uint8_t nothing[ROOM + 1] = {OFPI_RDM_EAGER};
    static const uint32_t lengths[] = {0, 7, 8, 23, ROOM + 1};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct attacker attacker;

        begin(&attacker, RDMFAKE_GETS);
        meet(&attacker);
        say(&attacker, nothing, lengths[i] > ROOM ? ROOM : lengths[i]);
        assert_int_equal(is_lost(&attacker), lengths[i] <= ROOM);
        end(&attacker);
    }
}

static void test_more_than_was_granted(void **state)
{
    const struct ofpi_rdm_packet eager = {.kind = OFPI_RDM_EAGER}, credit = {.kind = OFPI_RDM_CREDIT};
    struct attacker attacker;
    uint8_t bytes[64];

    (void)state;
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    for (int i = 0; i < OFPI_CREDIT_FIRST; i++)
        say_packet(&attacker, &eager, 8);
    assert_false(is_lost(&attacker));
    end(&attacker);
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    for (int i = 0; i <= OFPI_CREDIT_FIRST; i++)
        say_packet(&attacker, &eager, 8);
    assert_true(is_lost(&attacker));
    expect_warning("more packets than it was granted");
    end(&attacker);
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    ofpi_rdm_encode(&credit, bytes);
    ofpi_rdm_encode_credits(bytes, (const uint16_t[]){UINT16_MAX, 0}, false);
    say(&attacker, bytes, 8);
    assert_true(is_lost(&attacker));
    expect_warning("more credits than there can be");
    end(&attacker);
}

/* ----------------------------------------------------------------------------------------------- requests given up */

/* No confirmation and no end comes of the first path. The peer is put off once, not until the device gives that one up. */
static void test_a_request_that_was_given_up(void **state)
{
    const struct ofpi_rdm_packet eager = {.kind = OFPI_RDM_EAGER};
    struct ofpi_rdm_hello hello = greeting();
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct rdmfake_line *first;
    struct attacker attacker;

    (void)state;
    begin(&attacker, RDMFAKE_PACKETS);
    ofpi_rdm_hello_encode(&hello, bytes);
    ask(&attacker, bytes, sizeof(bytes));
    assert_true(hear(&attacker, RDMFAKE_ACCEPT));
    first = attacker.line;
    ask(&attacker, bytes, sizeof(bytes));
    assert_true(hear(&attacker, RDMFAKE_REFUSE));
    rdmfake_line_close(attacker.line, 0);
    meet(&attacker);
    say_packet(&attacker, &eager, 8);
    assert_false(is_lost(&attacker));
    assert_int_equal(read_victim_statistics(&attacker).unexpected_messages, 1);
    rdmfake_line_close(first, 0);
    progress(&attacker);
    assert_false(is_lost(&attacker));
    end(&attacker);
}

/* --------------------------------------------------------------------------------------------------------- hellos */

static void check_refused(const struct ofpi_rdm_hello *hello, size_t length)
{
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct attacker attacker;

    begin(&attacker, RDMFAKE_PACKETS);
    ofpi_rdm_hello_encode(hello, bytes);
    ask(&attacker, bytes, length);
    assert_true(hear(&attacker, RDMFAKE_REFUSE));
    end(&attacker);
}

static void test_hellos(void **state)
{
    struct ofpi_rdm_hello hello;

    (void)state;
    hello = greeting();
    check_refused(&hello, OFPI_RDM_HELLO_SIZE - 1);
    check_refused(&hello, 0);
    hello = greeting();
    hello.packet_size = 100;
    check_refused(&hello, OFPI_RDM_HELLO_SIZE);
    hello = greeting();
    hello.credits[1] = 0;
    check_refused(&hello, OFPI_RDM_HELLO_SIZE);
}

/*
 * ----------------------------------------------------------------------------------------- answers to what was asked
 */

static uint8_t payload[100000];

/* The victim sends the attacker something long. */
static struct ofpi_rdm_packet announced(struct attacker *attacker)
{
    struct ofp_operation send = tagged(OFP_TSEND, attacker->peer, 1, payload, sizeof(payload), 5);

    assert_int_equal(ofp_post(attacker->victim.endpoint, &send, 1), 1);
    assert_true(hear_packet(attacker, OFPI_RDM_ANNOUNCE));
    return attacker->last;
}

static void check_ended(struct attacker *attacker, int error)
{
    struct ofp_completion row;

    progress(attacker);
    assert_int_equal(ofp_cq_read(attacker->victim.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, error);
    assert_int_equal(ofp_cq_read(attacker->victim.cq, &row, 1), 0);
}

static void test_a_receiver_that_asks_for_more(void **state)
{
    const struct ofpi_rdm_packet wrong[] = {
        {.kind = OFPI_RDM_PULL, .length = sizeof(payload) + 1},
        {.kind = OFPI_RDM_PULL, .length = 0},
        {.kind = OFPI_RDM_PULL, .length = 100, .count = 1, .pieces = {{0, 100, 1}}}, /* nothing is put here */
        {.kind = OFPI_RDM_ANSWER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct attacker attacker;
        struct ofpi_rdm_packet packet = wrong[i];

        begin(&attacker, RDMFAKE_PACKETS);
        meet(&attacker);
        packet.id = announced(&attacker).id;
        say_packet(&attacker, &packet, 0);
        assert_true(is_lost(&attacker));
        check_ended(&attacker, EPROTO);
        end(&attacker);
    }
}

static void test_a_receiver_that_says_it_twice(void **state)
{
    struct ofpi_rdm_packet done = {.kind = OFPI_RDM_DONE}, pull = {.kind = OFPI_RDM_PULL, .length = sizeof(payload)};
    struct attacker attacker;

    (void)state;
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    done.id = announced(&attacker).id;
    say_packet(&attacker, &done, 0);
    say_packet(&attacker, &done, 0);
    check_ended(&attacker, 0);
    assert_true(is_lost(&attacker));
    end(&attacker);
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    pull.id = announced(&attacker).id;
    say_packet(&attacker, &pull, 0);
    say_packet(&attacker, &pull, 0);
    assert_true(is_lost(&attacker));
    check_ended(&attacker, EPROTO);
    end(&attacker);
    /* Done while it is still sent: its fragments stop. */
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    done.id = pull.id = announced(&attacker).id;
    say_packet(&attacker, &pull, 0);
    say_packet(&attacker, &done, 0);
    check_ended(&attacker, 0);
    assert_false(is_lost(&attacker));
    end(&attacker);
}

/* The victim receives what the attacker announces. */
static void receive_from(struct attacker *attacker, uint8_t *in, uint64_t length,
                         const struct ofpi_rdm_packet *announce)
{
    struct ofp_operation receive = tagged(OFP_TRECV, attacker->peer, 1, in, length, 5);

    assert_int_equal(ofp_post(attacker->victim.endpoint, &receive, 1), 1);
    say_packet(attacker, announce, 0);
}

static void test_a_sender_that_sends_something_else(void **state)
{
    const struct ofpi_rdm_packet announce = {
        .kind = OFPI_RDM_ANNOUNCE, .channel = OFP_CHANNEL_TAGGED, .tag = 1, .id = 77, .length = 3000};
    const struct {
        uint64_t offset;
        uint32_t length;
        uint8_t kind;
    } wrong[] = {{1, 100, OFPI_RDM_DATA},
                 {0, 0, OFPI_RDM_DATA},
                 {0, 1001, OFPI_RDM_DATA},
                 {UINT64_MAX, 2, OFPI_RDM_DATA},
                 {0, 0, OFPI_RDM_PUSHED}};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t *in = calloc(1, 1000); /* of this length: what is written beyond is found */
        struct attacker attacker;
        struct ofpi_rdm_packet packet = {.kind = wrong[i].kind, .offset = wrong[i].offset};

        begin(&attacker, RDMFAKE_PACKETS);
        meet(&attacker);
        receive_from(&attacker, in, 1000, &announce);
        assert_true(hear_packet(&attacker, OFPI_RDM_PULL));
        assert_int_equal(attacker.last.length, 1000);
        packet.receive = attacker.last.receive;
        say_packet(&attacker, &packet, wrong[i].length);
        assert_true(is_lost(&attacker));
        check_ended(&attacker, EPROTO);
        end(&attacker);
        free(in);
    }
}

/* Memory that the announcement says the sender has, and that is nobody's. */
static void test_a_sender_without_the_memory(void **state)
{
    const struct ofpi_rdm_packet announce = {.kind = OFPI_RDM_ANNOUNCE,
                                             .channel = OFP_CHANNEL_TAGGED,
                                             .tag = 1,
                                             .id = 77,
                                             .length = 3000,
                                             .count = 2,
                                             .pieces = {{4096, 1000, 5}, {1 << 20, 2000, 6}}};
    static uint8_t in[3000];
    struct attacker attacker;

    (void)state;
    begin(&attacker, RDMFAKE_GETS);
    meet(&attacker);
    receive_from(&attacker, in, sizeof(in), &announce);
    assert_true(hear_packet(&attacker, OFPI_RDM_DONE));
    assert_int_equal(attacker.last.id, 77);
    assert_int_equal(attacker.last.error, OFP_EREMOTE);
    check_ended(&attacker, OFP_EREMOTE);
    end(&attacker);
}

static void test_requests_for_memory_that_is_not_theirs(void **state)
{
    const struct ofpi_rdm_packet request = {.kind = OFPI_RDM_REMOTE,
                                            .flags = OFPI_RDM_LAST,
                                            .op = OFP_READ,
                                            .id = 9,
                                            .length = 100,
                                            .count = 1,
                                            .pieces = {{0, 100, 12345}}};
    struct attacker attacker;

    (void)state;
    begin(&attacker, RDMFAKE_PACKETS);
    meet(&attacker);
    say_packet(&attacker, &request, 0);
    assert_true(hear_packet(&attacker, OFPI_RDM_ANSWER));
    assert_int_equal(attacker.last.id, 9);
    assert_int_equal(attacker.last.error, OFP_EREMOTE);
    assert_int_equal(attacker.last.reason, OFP_ENOKEY);
    assert_int_equal(attacker.last.payload_length, 0);
    assert_false(is_lost(&attacker));
    end(&attacker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets_out_of_place),
        cmocka_unit_test(test_no_packets_at_all),
        cmocka_unit_test(test_more_than_was_granted),
        cmocka_unit_test(test_a_request_that_was_given_up),
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_a_receiver_that_asks_for_more),
        cmocka_unit_test(test_a_receiver_that_says_it_twice),
        cmocka_unit_test(test_a_sender_that_sends_something_else),
        cmocka_unit_test(test_a_sender_without_the_memory),
        cmocka_unit_test(test_requests_for_memory_that_is_not_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
