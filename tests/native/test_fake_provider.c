/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fake provider promises beyond what every test of the core uses: both kinds of endpoint, through the core. */
#include "fake_fixture.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/* The endpoint's own address, in its own vector. */
static uint32_t self_of(struct side *side)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    uint32_t self;

    assert_int_equal(ofp_endpoint_address(side->endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(side->av, address, length, &self), 0);
    return self;
}

/* --------------------------------------------------------------------------------------------------------- messages */

static void test_untagged_message_with_data(void **state)
{
    char out[] = "payload", in[16] = "";
    struct ofp_operation send = tagged(OFP_SEND, a.peer, 0, out, sizeof(out), 1);
    struct ofp_completion row;

    (void)state;
    send.data = 0x1122334455667788;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 0, in, sizeof(in), 2), 0);
    post(&b, tagged(OFP_RECV, b.peer, 0, in, sizeof(in), 3), 0);
    post(&a, send, OFP_REMOTE_CQ_DATA);
    row = next_completion(&b, &a);
    assert_int_equal(row.context, 3);
    assert_int_equal(row.length, sizeof(out));
    assert_true(row.flags & OFP_COMPLETED_REMOTE_CQ_DATA);
    assert_int_equal(row.data, send.data);
    assert_int_equal(row.source, b.peer);
    assert_string_equal(in, out);
}

static void test_oldest_receive_that_matches_wins(void **state)
{
    struct ofp_operation masked = tagged(OFP_TRECV, OFP_PEER_ANY, 0x10, NULL, 0, 2);
    uint64_t expected[] = {1, 2, 3};

    (void)state;
    masked.ignore = 0xf;
    /* Older, but for another source. */
    post(&b, tagged(OFP_TRECV, self_of(&b), 0x12, NULL, 0, 0), 0);
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 0x12, NULL, 0, 1), 0);
    post(&b, masked, 0);
    post(&b, tagged(OFP_TRECV, b.peer, 0x12, NULL, 0, 3), 0);
    for (int i = 0; i < 3; i++)
        post(&a, tagged(OFP_TSEND, a.peer, 0x12, NULL, 0, 0), OFP_INJECT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_completion(&b, &a).context, expected[i]);
}

/* More than the inbox holds, nobody reading meanwhile: the core keeps the rest, in order. */
static void test_full_inbox_holds_the_sender_back(void **state)
{
    enum { COUNT = 1000 };
    struct ofp_endpoint_statistics statistics;
    uint64_t value = 0;

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        post(&a, tagged(OFP_TSEND, a.peer, 1, &i, sizeof(i), 0), OFP_INJECT);
        ofp_domain_progress(a.domain);
    }
    assert_int_equal(ofp_endpoint_statistics(a.endpoint, &statistics), 0);
    assert_true(statistics.backlog > 0 && statistics.backlog < COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &value, sizeof(value), i), 0);
        assert_int_equal(next_completion(&b, &a).context, i);
        assert_int_equal(value, i);
    }
}

static void test_match_complete_waits_for_the_receive(void **state)
{
    struct ofp_completion row;

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, "x", 1, 1), OFP_MATCH_COMPLETE);
    assert_false(completed(&a, &row));
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 2), 0);
    assert_true(completed(&a, &row));
    assert_int_equal(row.context, 1);
    assert_int_equal(row.error, 0);
    assert_int_equal(next_completion(&b, &a).error, OFP_ETRUNC);
}

static void test_fence_waits_for_what_is_under_way(void **state)
{
    struct ofp_completion row;

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 2, NULL, 0, 12), 0);
    post(&a, tagged(OFP_TSEND, a.peer, 1, "x", 1, 1), OFP_MATCH_COMPLETE);
    post(&a, tagged(OFP_TSEND, a.peer, 2, NULL, 0, 2), OFP_FENCE);
    assert_false(completed(&b, &row));
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 11), 0);
    assert_int_equal(next_completion(&b, &a).context, 11);
    assert_int_equal(next_completion(&b, &a).context, 12);
}

static void test_sends_to_itself(void **state)
{
    char in[5000];
    static const char out[sizeof(in)] = "to myself";
    uint32_t self = self_of(&a);

    (void)state;
    post(&a, tagged(OFP_TSEND, self, 1, out, sizeof(out), 1), 0);
    assert_false(completed(&a, &(struct ofp_completion){0}));
    post(&a, tagged(OFP_TRECV, self, 1, in, sizeof(in), 2), 0);
    assert_int_equal(next_completion(&a, NULL).error, 0);
    assert_int_equal(next_completion(&a, NULL).error, 0);
    assert_memory_equal(in, out, sizeof(in));
}

/* Whole messages beyond the bound are announced to the core; nothing is lost or passes another. */
static void test_bound_on_unexpected_payload(void **state)
{
    enum { COUNT = 40, SIZE = 4096 };
    static char out[SIZE], in[SIZE];
    struct ofp_endpoint_attr attr = {.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av, .unexpected_limit = 4 * SIZE};
    struct ofp_endpoint_statistics statistics;
    char text[OFP_TEXT_MAX];

    (void)state;
    close_endpoint(&b);
    assert_int_equal(ofp_endpoint_open(b.domain, &attr, &b.endpoint, text, sizeof(text)), 0);
    sides_meet(&a, &b);
    for (int i = 0; i < COUNT; i++) {
        memset(out, 'A' + i, SIZE);
        post(&a, tagged(OFP_TSEND, a.peer, 1, out, SIZE, 0), OFP_INJECT);
    }
    settle();
    assert_int_equal(ofp_endpoint_statistics(b.endpoint, &statistics), 0);
    assert_true(statistics.announced_messages > 0);
    assert_true(statistics.unexpected_bytes <= 4 * SIZE);
    for (int i = 0; i < COUNT; i++) {
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 0), 0);
        assert_int_equal(next_completion(&b, &a).error, 0);
        memset(out, 'A' + i, SIZE);
        assert_memory_equal(in, out, SIZE);
    }
}

/* When the core keeps no more announcements the inbox waits, and sleeps; then it goes on in order. */
static void test_bound_on_announcements(void **state)
{
    enum { COUNT = 20, SIZE = 5000 };
    static uint64_t out[COUNT][SIZE / 8], in[SIZE / 8];
    struct ofp_endpoint_attr attr = {.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av};
    struct ofp_endpoint_statistics statistics;
    char text[OFP_TEXT_MAX];

    (void)state;
    close_endpoint(&b);
    setenv("OFIPY_ANNOUNCEMENTS", "4", 1);
    assert_int_equal(ofp_endpoint_open(b.domain, &attr, &b.endpoint, text, sizeof(text)), 0);
    unsetenv("OFIPY_ANNOUNCEMENTS");
    sides_meet(&a, &b);
    for (uint64_t i = 0; i < COUNT; i++) {
        out[i][0] = i;
        post(&a, tagged(OFP_TSEND, a.peer, 1, out[i], SIZE, i), 0);
    }
    settle();
    assert_int_equal(ofp_endpoint_statistics(b.endpoint, &statistics), 0);
    assert_int_equal(statistics.announced_messages, 4);
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 0), 0);
        assert_int_equal(next_completion(&b, &a).error, 0);
        assert_int_equal(in[0], i);
        assert_int_equal(next_completion(&a, &b).context, i);
    }
}

/* ------------------------------------------------------------------------------------------------- coming and going */

static void test_closed_peer_is_lost(void **state)
{
    static char out[10000];
    struct ofp_completion row;

    (void)state;
    post(&a, tagged(OFP_TRECV, a.peer, 1, NULL, 0, 1), 0);
    post(&a, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 2), 0);
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 3), 0);
    assert_false(completed(&a, &row));
    close_endpoint(&b);
    for (int i = 0; i < 2; i++) {
        assert_true(completed(&a, &row));
        assert_int_equal(row.error, OFP_EPEERLOST);
        assert_true(row.context == 1 || row.context == 3);
    }
    /* The receive from any source stays. */
    assert_false(completed(&a, &row));
    assert_int_equal(ofp_cancel(a.endpoint, 2), 0);
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 4), 0);
    do
        assert_true(completed(&a, &row));
    while (row.context != 4);
    assert_int_equal(row.error, ECONNREFUSED);
    assert_int_equal(ofp_av_close(b.av), 0);
    assert_int_equal(ofp_cq_close(b.cq), 0);
    assert_int_equal(ofp_domain_close(b.domain), 0);
}

/* What the leaver sent is received, and its successor at the same address is another peer. */
static void test_successor_at_the_same_address(void **state)
{
    struct ofp_endpoint_attr attr = {.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av, .service = "fake-successor"};
    char text[OFP_TEXT_MAX];
    struct ofp_endpoint_statistics statistics;
    struct ofp_endpoint *second;
    struct ofp_completion row;
    uint64_t value = 0;

    (void)state;
    for (uint64_t life = 1; life <= 2; life++) {
        close_endpoint(&b);
        assert_int_equal(ofp_endpoint_open(b.domain, &attr, &b.endpoint, text, sizeof(text)), 0);
        assert_int_equal(ofp_endpoint_open(b.domain, &attr, &second, text, sizeof(text)), -EADDRINUSE);
        assert_non_null(strstr(text, "fake-successor"));
        sides_meet(&a, &b);
        post(&b, tagged(OFP_TSEND, b.peer, 1, &life, sizeof(life), 0), OFP_INJECT);
        ofp_domain_progress(b.domain);
    }
    for (uint64_t life = 1; life <= 2; life++) {
        post(&a, tagged(OFP_TRECV, a.peer, 1, &value, sizeof(value), 0), 0);
        row = next_completion(&a, &b);
        assert_int_equal(row.error, 0);
        assert_int_equal(value, life);
        assert_int_equal(row.source, a.peer);
    }
    settle();
    assert_int_equal(ofp_endpoint_statistics(a.endpoint, &statistics), 0);
    assert_int_equal(statistics.peers_lost, 1);
    assert_int_equal(statistics.peers_up, 1);
}

static void test_removed_address_gives_its_messages_back(void **state)
{
    static char out[10000];
    struct ofp_completion row;

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 1), 0);
    assert_false(completed(&a, &row));
    assert_int_equal(ofp_av_remove(b.av, b.peer), 0);
    assert_true(completed(&a, &row));
    assert_int_equal(row.error, ECONNRESET);
}

static void test_forked_child_opens_anew(void **state)
{
    struct pollfd entry = {.fd = ofp_cq_fileno(b.cq), .events = POLLIN};
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    child = fork();
    if (child == 0) {
        uint64_t value = 0, sent = 42;

        side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
        side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
        sides_meet(&a, &b);
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &value, sizeof(value), 0), 0);
        post(&a, tagged(OFP_TSEND, a.peer, 1, &sent, sizeof(sent), 0), OFP_INJECT);
        next_completion(&b, &a);
        side_close(&a);
        side_close(&b);
        _exit(value == sent ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* Nothing that the child opened and closed woke the parent. */
    assert_int_equal(poll(&entry, 1, 0), 0);
}

/* -------------------------------------------------------------------------------------------------------- addresses */

static void test_addresses(void **state)
{
    struct ofp_provider *provider = fake_provider();
    char address[OFP_ADDRESS_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(address), little = 4;
    char many[100];

    (void)state;
    memset(many, 's', sizeof(many) - 1);
    many[sizeof(many) - 1] = 0;
    assert_int_equal(ofp_provider_resolve(provider, NULL, "localhost", "7471", address, &length, text, sizeof(text)),
                     0);
    assert_int_equal(ofp_provider_address_check(provider, NULL, address, length), 0);
    assert_int_equal(ofp_provider_address_format(provider, NULL, address, length, text, sizeof(text)), 0);
    assert_string_equal(text, "localhost:7471");
    assert_int_not_equal(ofp_provider_address_check(provider, NULL, address, length - 1), 0);
    address[0] ^= 1;
    assert_int_not_equal(ofp_provider_address_check(provider, NULL, address, length), 0);
    assert_int_equal(
        ofp_provider_resolve(provider, NULL, "elsewhere.example", "1", address, &length, text, sizeof(text)),
        -EHOSTUNREACH);
    assert_non_null(strstr(text, "elsewhere.example"));
    assert_int_equal(ofp_provider_resolve(provider, NULL, NULL, many, address, &length, text, sizeof(text)), -EINVAL);
    assert_int_equal(ofp_provider_resolve(provider, NULL, NULL, "1", address, &little, text, sizeof(text)),
                     -OFP_ETOOSMALL);
}

static void test_nobody_at_the_address(void **state)
{
    char address[OFP_ADDRESS_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(address);
    struct ofp_completion row;
    uint32_t nobody;

    (void)state;
    assert_int_equal(ofp_provider_resolve(fake_provider(), NULL, NULL, "nobody", address, &length, text, sizeof(text)),
                     0);
    assert_int_equal(ofp_av_insert(a.av, address, length, &nobody), 0);
    post(&a, tagged(OFP_TSEND, nobody, 1, NULL, 0, 1), 0);
    row = next_completion(&a, NULL);
    assert_int_equal(row.error, ECONNREFUSED);
}

#define BOTH(test)                                                                                                     \
    {#test " core-matched", test, open_matched, close_both, NULL},                                                     \
    {                                                                                                                  \
        #test " provider-matched", test, open_offloaded, close_both, NULL                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_untagged_message_with_data),
        BOTH(test_oldest_receive_that_matches_wins),
        BOTH(test_full_inbox_holds_the_sender_back),
        BOTH(test_match_complete_waits_for_the_receive),
        BOTH(test_fence_waits_for_what_is_under_way),
        BOTH(test_sends_to_itself),
        {"test_bound_on_unexpected_payload", test_bound_on_unexpected_payload, open_matched, close_both, NULL},
        {"test_bound_on_announcements", test_bound_on_announcements, open_matched, close_both, NULL},
        BOTH(test_closed_peer_is_lost),
        BOTH(test_successor_at_the_same_address),
        {"test_removed_address_gives_its_messages_back", test_removed_address_gives_its_messages_back, open_matched,
         close_both, NULL},
        {"test_forked_child_opens_anew", test_forked_child_opens_anew, open_matched, close_both, NULL},
        {"test_addresses", test_addresses, open_matched, close_both, NULL},
        BOTH(test_nobody_at_the_address),
    };

    /* So long the tests wait for nobody. */
    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
