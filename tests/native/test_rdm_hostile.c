/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that does not keep the rules: whatever it sends, it is lost with a sentence that says why or it gets what
 * anybody would get, the endpoint's memory stays its own, and the endpoint goes on with others.
 */
#include "rdm_fixture.h"

#define ROOM 8192

struct attacker {
    struct side victim, other;
    struct rdmfake_port *port;
    struct rdmfake_line *line;
    uint32_t peer;               /* the attacker, in the victim's vector */
    struct ofpi_rdm_packet last; /* that the victim sent; without its payload */
};

/* ---------------------------------------------------------------------------------------------------- the attacker */

/* The next thing of a kind that the victim sends. False: none is there. */
static bool hear(struct attacker *attacker, enum rdmfake_event_kind kind)
{
    struct rdmfake_event *event;
    bool found = false;

    while (!found && (event = rdmfake_port_take(attacker->port))) {
        found = event->kind == kind;
        if (found && kind == RDMFAKE_PACKET)
            assert_null(ofpi_rdm_decode(event->bytes, event->length, &attacker->last));
        rdmfake_event_free(event);
    }
    return found;
}

static void progress(struct attacker *attacker) { rdm_settle(&attacker->victim, &attacker->other); }

static bool hear_packet(struct attacker *attacker, enum ofpi_rdm_kind kind)
{
    progress(attacker);
    while (hear(attacker, RDMFAKE_PACKET))
        if (attacker->last.kind == kind)
            return true;
    return false;
}

static void say(struct attacker *attacker, const void *bytes, uint32_t length)
{
    assert_int_equal(rdmfake_line_put(attacker->line, 1, RDMFAKE_PACKET, 0, NULL, bytes, length), 0);
}

static void say_packet(struct attacker *attacker, const struct ofpi_rdm_packet *packet, uint32_t payload)
{
    static uint8_t bytes[2 * ROOM];
    uint32_t length = ofpi_rdm_encode(packet, bytes);

    memset(bytes + length, 'x', payload);
    say(attacker, bytes, length + payload);
}

static struct ofpi_rdm_hello greeting(void)
{
    return (struct ofpi_rdm_hello){.version = OFPI_RDM_VERSION,
                                   .oldest = OFPI_RDM_OLDEST,
                                   .packet_size = ROOM,
                                   .credits = {100, 100},
                                   .incarnation = 4711};
}

static void ask(struct attacker *attacker, const uint8_t *hello, size_t length)
{
    struct rdmfake_address address;
    size_t size = sizeof(address);
    int error;

    assert_int_equal(ofp_endpoint_address(attacker->victim.endpoint, &address, &size), 0);
    attacker->line = rdmfake_line_ask(attacker->port, &address, hello, length, &error);
    assert_non_null(attacker->line);
    progress(attacker);
}

static void meet(struct attacker *attacker)
{
    struct ofpi_rdm_hello hello = greeting();
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];

    ofpi_rdm_hello_encode(&hello, bytes);
    ask(attacker, bytes, sizeof(bytes));
    assert_true(hear(attacker, RDMFAKE_ACCEPT));
    rdmfake_line_put(attacker->line, 1, RDMFAKE_CONFIRM, 0, NULL, NULL, 0);
    progress(attacker);
}

static void begin(struct attacker *attacker, enum rdmfake_kind kind)
{
    struct rdmfake_address address = {.magic = 0x666d6472u, .process = (uint32_t)getpid(), .service = "attacker"};

    memset(attacker, 0, sizeof(*attacker));
    rdm_side_open(&attacker->victim, kind, 0);
    rdm_side_open(&attacker->other, kind, 0);
    sides_meet(&attacker->victim, &attacker->other);
    assert_int_equal(rdmfake_port_open(&address, false, -1, NULL, &attacker->port), 0);
    for (int i = 0; i < 1000; i++)
        rdmfake_port_posted(attacker->port);
    assert_int_equal(ofp_av_insert(attacker->victim.av, &address, sizeof(address), &attacker->peer), 0);
    forget_warnings();
}

static void check_good_peer(struct attacker *attacker)
{
    uint64_t out = 42, in = 0;
    struct ofp_operation receive = tagged(OFP_TRECV, attacker->victim.peer, 99, &in, sizeof(in), 99);
    struct ofp_operation send = tagged(OFP_TSEND, attacker->other.peer, 99, &out, sizeof(out), 98);
    struct ofp_completion row;

    assert_int_equal(ofp_post(attacker->victim.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(attacker->other.endpoint, &send, 1), 1);
    do
        row = next_completion(&attacker->victim, &attacker->other);
    while (row.context != 99);
    assert_int_equal(row.error, 0);
    assert_int_equal(in, 42);
    while (ofp_cq_read(attacker->other.cq, &row, 1) == 1)
        ;
}

static void end(struct attacker *attacker)
{
    check_good_peer(attacker);
    rdmfake_line_close(attacker->line, 0, NULL);
    rdmfake_port_close(attacker->port);
    progress(attacker);
    forget_warnings();
    side_close(&attacker->victim);
    side_close(&attacker->other);
}

static bool is_lost(struct attacker *attacker)
{
    struct ofp_endpoint_statistics statistics;

    progress(attacker);
    assert_int_equal(ofp_endpoint_statistics(attacker->victim.endpoint, &statistics), 0);
    return statistics.peers_lost == 1;
}

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
    hello.oldest = hello.version = OFPI_RDM_VERSION + 1;
    check_refused(&hello, OFPI_RDM_HELLO_SIZE);
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
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_a_receiver_that_asks_for_more),
        cmocka_unit_test(test_a_receiver_that_says_it_twice),
        cmocka_unit_test(test_a_sender_that_sends_something_else),
        cmocka_unit_test(test_a_sender_without_the_memory),
        cmocka_unit_test(test_requests_for_memory_that_is_not_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
