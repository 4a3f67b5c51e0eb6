/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that has learned from our request who we are, and says that it is us. */
#include "rdm_fixture.h"

struct stranger {
    struct side victim;
    uint32_t peer; /* the stranger, in the victim's vector */
    struct rdmfake_port *port;
    struct rdmfake_line *asked, *line; /* that the victim asked for, and that the stranger asks for */
    struct ofpi_rdm_hello hello;       /* what the victim said of itself */
};

static void progress(struct stranger *stranger)
{
    for (int i = 0; i < 20; i++)
        ofp_domain_progress(stranger->victim.domain);
}

static void hear_request(struct stranger *stranger)
{
    struct rdmfake_event *event = rdmfake_port_take(stranger->port);
    char text[OFP_TEXT_MAX];

    assert_non_null(event);
    assert_int_equal(event->kind, RDMFAKE_ASK);
    stranger->asked = rdmfake_line_hold(event->line);
    assert_int_equal(ofpi_rdm_hello_decode(event->bytes, event->length, &stranger->hello, text, sizeof(text)), 0);
    rdmfake_event_free(event);
    stranger->hello.packet_size = stranger->hello.packet_size < 8192 ? stranger->hello.packet_size : 8192;
}

/* The victim sends the stranger something, for which it has to connect. */
static void begin(struct stranger *stranger)
{
    struct rdmfake_address address = {.magic = 0x666d6472u, .process = (uint32_t)getpid(), .service = "stranger"};
    static uint64_t out = 42;
    struct ofp_operation send;

    memset(stranger, 0, sizeof(*stranger));
    rdm_side_open(&stranger->victim, RDMFAKE_GETS, 0);
    assert_int_equal(rdmfake_port_open(&address, false, -1, NULL, &stranger->port), 0);
    for (int i = 0; i < 100; i++)
        rdmfake_port_posted(stranger->port);
    assert_int_equal(ofp_av_insert(stranger->victim.av, &address, sizeof(address), &stranger->peer), 0);
    send = tagged(OFP_TSEND, stranger->peer, 9, &out, sizeof(out), 98);
    assert_int_equal(ofp_post(stranger->victim.endpoint, &send, 1), 1);
    progress(stranger);
    hear_request(stranger);
}

/* What the victim answers when it is asked with this hello. */
static enum rdmfake_event_kind ask(struct stranger *stranger, const struct ofpi_rdm_hello *hello)
{
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct rdmfake_address there;
    size_t size = sizeof(there);
    struct rdmfake_event *event;
    enum rdmfake_event_kind kind;
    int error;

    ofpi_rdm_hello_encode(hello, bytes);
    assert_int_equal(ofp_endpoint_address(stranger->victim.endpoint, &there, &size), 0);
    stranger->line = rdmfake_line_ask(stranger->port, &there, bytes, sizeof(bytes), &error);
    assert_non_null(stranger->line);
    progress(stranger);
    event = rdmfake_port_take(stranger->port);
    assert_non_null(event);
    kind = event->kind;
    rdmfake_event_free(event);
    return kind;
}

static void announce(struct stranger *stranger)
{
    const struct ofpi_rdm_packet packet = {.kind = OFPI_RDM_ANNOUNCE,
                                           .channel = OFP_CHANNEL_TAGGED,
                                           .tag = 1,
                                           .id = 77,
                                           .length = 3000,
                                           .count = 1,
                                           .pieces = {{4096, 3000, 5}}};
    static uint8_t bytes[512];
    uint32_t length = ofpi_rdm_encode(&packet, bytes);

    assert_int_equal(rdmfake_line_put(stranger->line, 1, RDMFAKE_PACKET, false, bytes, length), 0);
    progress(stranger);
}

static uint64_t announced(const struct stranger *stranger)
{
    struct ofp_endpoint_statistics statistics;

    assert_int_equal(ofp_endpoint_statistics(stranger->victim.endpoint, &statistics), 0);
    return statistics.announced_messages;
}

static void end(struct stranger *stranger)
{
    if (stranger->line)
        rdmfake_line_close(stranger->line, 0);
    rdmfake_line_close(stranger->asked, 1);
    rdmfake_port_close(stranger->port);
    progress(stranger);
    forget_warnings();
    side_close(&stranger->victim);
}

static void test_a_request_that_shows_our_incarnation(void **state)
{
    struct stranger stranger;
    struct ofpi_rdm_hello hello;

    (void)state;
    begin(&stranger);
    hello = stranger.hello;
    assert_int_equal(ask(&stranger, &hello), RDMFAKE_REFUSE);
    expect_warning("it is this endpoint itself");
    end(&stranger);
}

static void test_a_request_that_shows_our_identity(void **state)
{
    struct stranger stranger;
    struct ofpi_rdm_hello hello;

    (void)state;
    begin(&stranger);
    hello = stranger.hello;
    hello.incarnation++;
    assert_int_equal(ask(&stranger, &hello), RDMFAKE_REFUSE);
    expect_warning("it is this endpoint itself");
    end(&stranger);
}

static void test_an_answer_that_shows_our_incarnation(void **state)
{
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct stranger stranger;
    struct ofp_completion row;
    char text[OFP_TEXT_MAX];

    (void)state;
    begin(&stranger);
    ofpi_rdm_hello_encode(&stranger.hello, bytes);
    assert_int_equal(rdmfake_line_put(stranger.asked, 0, RDMFAKE_ACCEPT, false, bytes, sizeof(bytes)), 0);
    progress(&stranger);
    assert_int_equal(ofp_cq_read(stranger.victim.cq, &row, 1), 1);
    assert_int_equal(row.error, ECONNREFUSED);
    assert_true(ofp_reason(row.provider_error, text, sizeof(text)) >= 0);
    assert_string_equal(text, "who answered says that it is this endpoint itself");
    end(&stranger);
}

/* Even who knows the number by which an endpoint knows itself is not heard before the peer is up. */
static void test_nothing_is_believed_before_the_peer_is_up(void **state)
{
    static uint8_t in[3000];
    struct stranger stranger;
    struct ofpi_rdm_hello hello;
    struct ofp_operation receive;

    (void)state;
    begin(&stranger);
    hello = stranger.hello;
    hello.incarnation = rdm_of(&stranger.victim)->own_request;
    assert_int_equal(ask(&stranger, &hello), RDMFAKE_ACCEPT);
    announce(&stranger);
    assert_int_equal(announced(&stranger), 0);
    /* "Later" ends the path by which it came, and the core, which has heard nothing, is told nothing. */
    rdmfake_line_notify(stranger.asked, 0, RDMFAKE_REFUSE, EAGAIN);
    progress(&stranger);
    receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, sizeof(in), 5);
    assert_int_equal(ofp_post(stranger.victim.endpoint, &receive, 1), 1);
    progress(&stranger);
    end(&stranger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_that_shows_our_incarnation),
        cmocka_unit_test(test_a_request_that_shows_our_identity),
        cmocka_unit_test(test_an_answer_that_shows_our_incarnation),
        cmocka_unit_test(test_nothing_is_believed_before_the_peer_is_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
