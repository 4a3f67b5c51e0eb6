/* SPDX-License-Identifier: BSD-3-Clause */
/* Which endpoint the other side is, as both say while a connection comes up; and peers that nobody connects to. */
#include "identity_ear.h"
#include "test_tcp_fixture.h"
#include "base/page.h"
#include "object/endpoint.h"

#define OFFER (TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION)

static void sides_open(struct side *a, struct side *b)
{
    tcp_side_open(a);
    tcp_side_open(b);
    listen_to(a, &ears[0]);
    listen_to(b, &ears[1]);
    sides_meet(a, b);
}

static void test_each_hears_who_the_other_is(void **state)
{
    struct side a, b;

    (void)state;
    sides_open(&a, &b);
    each_hears_who_the_other_is(&a, &b);
    side_close(&a);
    side_close(&b);
}

static void test_another_than_is_meant(void **state)
{
    struct side a, b;

    (void)state;
    sides_open(&a, &b);
    another_than_is_meant(&a, &b);
    side_close(&a);
    side_close(&b);
}

/* Both call at once: one connection, and no operation is lost. */
static void test_calls_that_cross(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct side a, b;
        uint8_t bytes[2] = {1, 2}, room[2] = {0};

        sides_open(&a, &b);
        post(&a, tagged(OFP_TRECV, a.peer, 1, &room[0], 1, 2));
        post(&b, tagged(OFP_TRECV, b.peer, 1, &room[1], 1, 2));
        post(&a, tagged(OFP_TSEND, a.peer, 1, &bytes[0], 1, 1));
        for (int turn = 0; turn < round / 2; turn++)
            ofp_domain_progress((turn & 1 ? &a : &b)->domain);
        post(&b, tagged(OFP_TSEND, b.peer, 1, &bytes[1], 1, 1));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(next_completion(&a, &b).error, 0);
            assert_int_equal(next_completion(&b, &a).error, 0);
        }
        assert_int_equal(room[0], 2);
        assert_int_equal(room[1], 1);
        side_close(&a);
        side_close(&b);
    }
}

/* ------------------------------------------------------------------------------------------------------ bare sockets */

static const uint8_t whoever[OFP_IDENTITY_SIZE] = "sixteen bytes..";

static void say_who(int fd, const struct tcp_rdm *rdm, size_t size)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_IDENTIFIED_SIZE];
    struct tcp_control control = {
        .type = TCP_CONNREQ, .private_size = (uint16_t)size, .magic = OFFER, .capabilities = TCP_CAPABILITY_IDENTITY};

    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(rdm, bytes + TCP_CONTROL_SIZE);
    memcpy(bytes + TCP_CONTROL_SIZE + TCP_RDM_SIZE, whoever, sizeof(whoever));
    raw_write(fd, bytes, TCP_CONTROL_SIZE + size);
}

/* A request that offers to say who asks, and the answer that wants to know. */
static int raw_offer(struct side *side, const struct tcp_rdm *rdm)
{
    struct tcp_control control;
    uint8_t bytes[TCP_CONTROL_SIZE];
    int fd = raw_connect(side);

    say_who(fd, rdm, TCP_RDM_SIZE);
    assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
    assert_int_equal(tcp_control_decode(bytes, &control), 0);
    assert_int_equal(control.type, TCP_CONNRESP);
    assert_int_equal(control.private_size, 0);
    assert_true(control.capabilities & TCP_CAPABILITY_IDENTITY);
    return fd;
}

static void test_the_request_that_counts(void **state)
{
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID}, answer;
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_IDENTIFIED_SIZE];
    struct tcp_control control;
    struct side side;
    int fd;

    (void)state;
    tcp_side_open(&side);
    listen_to(&side, &ears[0]);
    fd = raw_offer(&side, &rdm);
    assert_int_equal(ears[0].calls, 0);
    say_who(fd, &rdm, TCP_RDM_IDENTIFIED_SIZE);
    assert_true(raw_read(&side, fd, bytes, sizeof(bytes)));
    assert_int_equal(tcp_control_decode(bytes, &control), 0);
    assert_int_equal(control.type, TCP_CONNRESP);
    assert_int_equal(control.private_size, TCP_RDM_IDENTIFIED_SIZE);
    tcp_rdm_decode(bytes + TCP_CONTROL_SIZE, &answer);
    assert_int_equal(answer.port, RAW_PORT);
    assert_memory_equal(bytes + TCP_CONTROL_SIZE + TCP_RDM_SIZE, side.endpoint->identity, OFP_IDENTITY_SIZE);
    assert_memory_equal(ears[0].called_by, whoever, sizeof(whoever));
    assert_int_equal(ears[0].calls, 1);
    close(fd);
    serves(&side);
    side_close(&side);
}

/* Who was asked and does not say it is nobody's peer. */
static void test_no_second_request(void **state)
{
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    struct side side;
    int fd;

    (void)state;
    tcp_side_open(&side);
    listen_to(&side, &ears[0]);
    fd = raw_offer(&side, &rdm);
    say_who(fd, &rdm, TCP_RDM_SIZE);
    raw_is_dropped(&side, fd);
    fd = raw_offer(&side, &rdm);
    raw_send(fd, (struct tcp_header){.op = TCP_HELLO}, NULL, 0);
    raw_is_dropped(&side, fd);
    assert_int_equal(ears[0].calls, 0);
    serves(&side);
    side_close(&side);
}

/* --------------------------------------------------------------------------------------------- nobody connects to them */

static int listen_at(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int raw_meet_who_only_connects(struct side *side)
{
    struct tcp_rdm rdm = {.version = 1, .features = TCP_RDM_CONNECTS_ONLY, .port = RAW_PORT, .pid = RAW_PID};
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE];
    int fd = raw_connect(side);

    raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &rdm);
    assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
    assert_int_equal(bytes[1], TCP_CONNRESP);
    tcp_rdm_decode(bytes + TCP_CONTROL_SIZE, &rdm);
    assert_int_equal(rdm.features, TCP_RDM_CONNECTS_ONLY);
    return fd;
}

/* Its connection is its own to open: we neither knock nor call, and its loss says nothing of its process. */
static void test_who_only_connects(void **state)
{
    int listener = listen_at(RAW_PORT), fd;
    struct side side;
    struct ofp_completion row;
    char reason[OFP_TEXT_MAX];
    uint8_t in = 0, out = 7;
    uint8_t bytes[TCP_HEADER_BASE + 9];
    uint32_t peer;

    (void)state;
    tcp_side_open(&side);
    fd = raw_meet_who_only_connects(&side);
    peer = raw_peer(&side);
    post(&side, tagged(OFP_TRECV, peer, 1, &in, 1, 1));
    post(&side, tagged(OFP_TSEND, peer, 2, &out, 1, 2));
    assert_int_equal(next_completion(&side, NULL).context, 2);
    assert_true(raw_read(&side, fd, bytes, sizeof(bytes)));
    assert_int_equal(bytes[sizeof(bytes) - 1], 7);
    close(fd);
    while (((struct ofpi_endpoint *)side.endpoint)->counts->peers_up)
        ofp_domain_progress(side.domain);
    post(&side, tagged(OFP_TSEND, peer, 2, &out, 1, 3));
    row = next_completion(&side, NULL);
    assert_int_equal(row.context, 3);
    assert_int_equal(row.error, EHOSTUNREACH);
    ofp_reason(row.provider_error, reason, sizeof(reason));
    assert_non_null(strstr(reason, "node="));
    assert_non_null(strstr(reason, "OFIPY_INTERFACE"));
    assert_non_null(strstr(reason, "OFIPY_AUTH_KEY_FILE"));
    assert_int_equal(accept(listener, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    /* The receive that names it is still posted, and takes what it sends when it calls again. */
    fd = raw_meet_who_only_connects(&side);
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 1, .payload = 1}, "x", 1);
    row = next_completion(&side, NULL);
    assert_int_equal(row.context, 1);
    assert_int_equal(row.error, 0);
    assert_int_equal(in, 'x');
    close(fd);
    close(listener);
    side_close(&side);
}

/* The same of an endpoint of ours, which says so in its request. */
static void test_an_endpoint_that_only_connects(void **state)
{
    struct side a, b;
    char reason[OFP_TEXT_MAX];

    (void)state;
    sides_open(&a, &b);
    a.endpoint->connects_only = true;
    assert_int_equal(talk(&a, &b, reason), 0);
    assert_true(ears[1].connects_only);
    assert_int_equal(talk(&b, &a, reason), 0);
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_hears_who_the_other_is),
        cmocka_unit_test(test_another_than_is_meant),
        cmocka_unit_test(test_calls_that_cross),
        cmocka_unit_test(test_the_request_that_counts),
        cmocka_unit_test(test_no_second_request),
        cmocka_unit_test(test_who_only_connects),
        cmocka_unit_test(test_an_endpoint_that_only_connects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
