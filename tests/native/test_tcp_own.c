/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that has learned from our request who we are, and says that it is us; and an endpoint that is its own peer beside one. */
#include "test_tcp_fixture.h"

#define OFFER (TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION)

static void say_who(int fd, enum tcp_control_type type, const struct tcp_rdm *rdm, const uint8_t *identity)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_IDENTIFIED_SIZE];
    size_t size = identity ? TCP_RDM_IDENTIFIED_SIZE : TCP_RDM_SIZE;
    struct tcp_control control = {
        .type = type, .private_size = (uint16_t)size, .magic = OFFER, .capabilities = TCP_CAPABILITY_IDENTITY};

    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(rdm, bytes + TCP_CONTROL_SIZE);
    if (identity)
        memcpy(bytes + TCP_CONTROL_SIZE + TCP_RDM_SIZE, identity, OFP_IDENTITY_SIZE);
    raw_write(fd, bytes, TCP_CONTROL_SIZE + size);
}

static int listen_anywhere(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

/* The side connects to a listener of ours, to send something: its socket, accepted. */
static int be_called(struct side *side, int listener, const struct sockaddr_in *address)
{
    static uint8_t byte = 7;
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    uint32_t peer;
    int fd;

    assert_int_equal(ofp_av_insert(side->av, address, sizeof(*address), &peer), 0);
    post(side, tagged(OFP_TSEND, peer, 1, &byte, 1, 5));
    while ((fd = accept(listener, NULL, NULL)) < 0) {
        assert_true(ofpi_clock_read() < deadline);
        ofp_domain_progress(side->domain);
    }
    return fd;
}

static void read_control(struct side *side, int fd, struct tcp_control *control)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];

    assert_true(raw_read(side, fd, bytes, TCP_CONTROL_SIZE));
    assert_int_equal(tcp_control_decode(bytes, control), 0);
    assert_true(raw_read(side, fd, bytes + TCP_CONTROL_SIZE, control->private_size));
}

/* Ask who that is, as an endpoint does. */
static void ask_who_it_is(int fd)
{
    struct tcp_control control = {.type = TCP_CONNRESP, .magic = OFFER, .capabilities = TCP_CAPABILITY_IDENTITY};
    uint8_t bytes[TCP_CONTROL_SIZE];

    tcp_control_encode(&control, bytes);
    raw_write(fd, bytes, sizeof(bytes));
}

static void test_a_request_that_shows_our_identity(void **state)
{
    struct sockaddr_in address;
    int listener = listen_anywhere(&address), ours, fd;
    struct tcp_rdm rdm = {.version = 1, .port = ntohs(address.sin_port), .pid = RAW_PID};
    struct tcp_control control;
    struct side side;

    (void)state;
    tcp_side_open(&side);
    forget_warnings();
    ours = be_called(&side, listener, &address);
    fd = raw_connect(&side);
    say_who(fd, TCP_CONNREQ, &rdm, NULL);
    read_control(&side, fd, &control);
    assert_int_equal(control.private_size, 0);
    say_who(fd, TCP_CONNREQ, &rdm, side.endpoint->identity);
    raw_is_dropped(&side, fd);
    expect_warning("it is this endpoint itself");
    close(ours);
    close(listener);
    serves(&side);
    side_close(&side);
}

static void test_an_answer_that_shows_our_identity(void **state)
{
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    struct sockaddr_in address;
    int listener = listen_anywhere(&address), fd;
    struct tcp_control control;
    struct ofp_completion row;
    char text[OFP_TEXT_MAX];
    struct side side;

    (void)state;
    tcp_side_open(&side);
    forget_warnings();
    fd = be_called(&side, listener, &address);
    read_control(&side, fd, &control);
    ask_who_it_is(fd);
    read_control(&side, fd, &control);
    assert_int_equal(control.private_size, TCP_RDM_IDENTIFIED_SIZE);
    say_who(fd, TCP_CONNRESP, &rdm, side.endpoint->identity);
    row = next_completion(&side, NULL);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ECONNREFUSED);
    assert_true(ofp_reason(row.provider_error, text, sizeof(text)) >= 0);
    assert_string_equal(text, "who answered says that it is this endpoint itself");
    close(fd);
    close(listener);
    serves(&side);
    side_close(&side);
}

/* Whoever asks from our host can say our port; the endpoint still finds itself. */
static void test_a_request_that_shows_our_address(void **state)
{
    uint8_t out[2] = {1, 2}, in = 0;
    union tcp_address own;
    struct tcp_rdm rdm = {.version = 1, .pid = RAW_PID};
    struct tcp_control control = {.type = TCP_CONNREQ};
    struct side side;
    uint32_t self;
    int fd;

    (void)state;
    tcp_side_open(&side);
    forget_warnings();
    own = address_of(&side);
    rdm.port = tcp_address_get_port(&own);
    assert_int_equal(ofp_av_insert(side.av, &own, tcp_address_get_length(&own), &self), 0);
    fd = raw_connect(&side);
    raw_request(fd, control, &rdm);
    post(&side, tagged(OFP_TRECV, self, 1, &in, 1, 1));
    post(&side, tagged(OFP_TSEND, self, 1, &out[1], 1, 2));
    raw_is_dropped(&side, fd);
    expect_warning("it is this endpoint itself");
    assert_int_equal(next_completion(&side, NULL).error, 0);
    assert_int_equal(next_completion(&side, NULL).error, 0);
    assert_int_equal(in, 2);
    serves(&side);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_that_shows_our_identity),
        cmocka_unit_test(test_an_answer_that_shows_our_identity),
        cmocka_unit_test(test_a_request_that_shows_our_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
