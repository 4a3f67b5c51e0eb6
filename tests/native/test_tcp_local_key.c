/* SPDX-License-Identifier: BSD-3-Clause */
/* A key that endpoints prove to each other within one host, where no other is configured. */
#include "address/interface.h"
#include "test_tcp_keys.h"

#define CONFIGURED "the key of these tests"

static const uint8_t ours[OFP_KEY_SIZE] = "a key of this user, thirty-two";
static const uint8_t another[OFP_KEY_SIZE] = "a key of another one, shorter";

static void open_local(struct side *side, const char *configured, const uint8_t *local)
{
    open_with(side, configured);
    side->endpoint->local_key = local;
    if (local)
        tcp_endpoint_of(side->endpoint)->domain->extension = true;
}

static void test_the_same_user(void **state)
{
    struct side a, b;

    (void)state;
    for (int configured = 0; configured < 2; configured++) {
        open_local(&a, configured ? CONFIGURED : NULL, ours);
        /* Where one is configured it is the only one. */
        open_local(&b, configured ? CONFIGURED : NULL, configured ? another : ours);
        sides_meet(&a, &b);
        assert_int_equal(try_to_talk(&a, &b), 0);
        assert_int_equal(try_to_talk(&b, &a), 0);
        side_close(&a);
        side_close(&b);
    }
}

/* Whoever calls, and whoever has no such key: each side is told what to do. */
static void test_others(void **state)
{
    static const struct {
        const uint8_t *from, *to;
        int error;
        const char *caller, *called;
    } pairs[] = {
        {ours, another, EACCES, "the peer has another key", "the peer has another key"},
        {NULL, ours, ECONNREFUSED, "within one host the peer requires a proof",
         "within one host this side proves the user"},
        {ours, NULL, ECONNREFUSED, "within one host this side proves the user",
         "the peer has a key and this side has none"},
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct side a, b;
        char reason[OFP_TEXT_MAX];

        open_local(&a, NULL, pairs[i].from);
        open_local(&b, NULL, pairs[i].to);
        sides_meet(&a, &b);
        is_warned_of("what was before");
        assert_int_equal(try_to_talk_or(&a, &b, reason), pairs[i].error);
        assert_non_null(strstr(reason, pairs[i].caller));
        assert_non_null(strstr(reason, "OFIPY_AUTH_KEY_FILE"));
        ofp_domain_progress(b.domain);
        assert_true(is_warned_of(pairs[i].called));
        side_close(&a);
        side_close(&b);
    }
}

/* A program on libfabric, which cannot prove anything. */
static void test_a_stock_peer(void **state)
{
    struct side side;
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    uint8_t answer[TCP_CONTROL_SIZE + 1];
    int fd;

    (void)state;
    open_local(&side, NULL, ours);
    fd = raw_connect(&side);
    raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &rdm);
    assert_true(raw_read(&side, fd, answer, sizeof(answer)));
    assert_int_equal(answer[1], TCP_NACK);
    assert_int_equal(answer[TCP_CONTROL_SIZE], TCP_REFUSED_LOCALLY);
    raw_is_dropped(&side, fd);
    side_close(&side);
}

static void test_what_is_of_this_host(void **state)
{
    static const struct {
        const char *ip;
        bool ours;
    } addresses[] = {{"127.0.0.1", true}, {"127.3.2.1", true}, {"192.0.2.1", false}, {"198.51.100.1", false}};
    struct tcp_interface interfaces[TCP_INTERFACES_MAX];
    int count = tcp_interfaces_query(interfaces, NULL);

    (void)state;
    for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        union tcp_address address = {.v4 = {.sin_family = AF_INET}};

        inet_pton(AF_INET, addresses[i].ip, &address.v4.sin_addr);
        assert_int_equal(tcp_is_of_this_host(&address), addresses[i].ours);
    }
    for (int i = 0; i < count; i++)
        assert_true(tcp_is_of_this_host(&interfaces[i].address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_user),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_a_stock_peer),
        cmocka_unit_test(test_what_is_of_this_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
