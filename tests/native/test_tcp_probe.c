/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that end without a goodbye: whether anybody is there still, by the socket on which the peer listens. */
#include "test_tcp_fixture.h"

#include <poll.h>

/* A peer with a socket that listens, and a receive that names it. */
struct peer {
    int listener, fd;
    uint32_t index;
    union tcp_address address;
    char room[8];
};

static void meet(struct side *side, struct peer *peer)
{
    struct tcp_control control;
    struct tcp_rdm rdm;

    peer->fd = raw_meet_as(side, tcp_address_get_port(&peer->address), RAW_PID, 0, &control, &rdm);
    assert_int_equal(control.type, TCP_CONNRESP);
}

static void peer_open(struct side *side, struct peer *peer)
{
    socklen_t length = sizeof(peer->address.v4);

    tcp_side_open(side);
    memset(&peer->address, 0, sizeof(peer->address));
    peer->address.v4.sin_family = AF_INET;
    peer->address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(peer->listener, &peer->address.any, length), 0);
    assert_int_equal(listen(peer->listener, 10), 0);
    assert_int_equal(getsockname(peer->listener, &peer->address.any, &length), 0);
    assert_int_equal(ofp_av_insert(side->av, &peer->address, length, &peer->index), 0);
    meet(side, peer);
    post(side, tagged(OFP_TRECV, peer->index, 1, peer->room, sizeof(peer->room), 1));
}

static void wait_for_knock(struct side *side, const struct peer *peer)
{
    struct pollfd entry = {.fd = peer->listener, .events = POLLIN};
    uint64_t deadline = ofpi_clock_read() + PATIENCE;

    while (poll(&entry, 1, 0) == 0) {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
}

static void wait_for_loss(struct side *side)
{
    struct ofp_endpoint_statistics statistics;
    uint64_t deadline = ofpi_clock_read() + PATIENCE;

    do {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
        assert_int_equal(ofp_endpoint_statistics(side->endpoint, &statistics), 0);
    } while (!statistics.peers_lost);
}

static void expect_peer_lost(struct side *side)
{
    struct ofp_completion row = next_completion(side, NULL);

    assert_int_equal(row.context, 1);
    assert_int_equal(row.error, OFP_EPEERLOST);
}

static void test_nobody_is_there(void **state)
{
    struct side side;
    struct peer peer;

    (void)state;
    peer_open(&side, &peer);
    close(peer.listener);
    close(peer.fd);
    expect_peer_lost(&side);
    side_close(&side);
}

/* As where a process ends: the connection is closed first, and for a moment its kernel answers for it. */
static void test_who_answers_and_is_gone(void **state)
{
    struct side side;
    struct peer peer;

    (void)state;
    peer_open(&side, &peer);
    close(peer.fd);
    wait_for_knock(&side, &peer);
    close(peer.listener);
    expect_peer_lost(&side);
    side_close(&side);
}

/* One that lives, and one that closes whatever it has accepted, such as something that forwards connections. */
static void test_who_answers_is_waited_for(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        struct ofp_completion row;
        struct side side;
        struct peer peer;

        peer_open(&side, &peer);
        close(peer.fd);
        for (int i = 0; i < 2 * closes; i++) {
            wait_for_knock(&side, &peer);
            close(accept4(peer.listener, NULL, NULL, SOCK_CLOEXEC));
        }
        wait_for_loss(&side);
        meet(&side, &peer);
        raw_send(peer.fd, (struct tcp_header){.op = TCP_TAG, .tag = 1, .payload = 5}, "hello", 5);
        row = next_completion(&side, NULL);
        assert_int_equal(row.context, 1);
        assert_int_equal(row.error, 0);
        assert_memory_equal(peer.room, "hello", 5);
        close(peer.fd);
        close(peer.listener);
        side_close(&side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_there),
        cmocka_unit_test(test_who_answers_and_is_gone),
        cmocka_unit_test(test_who_answers_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
