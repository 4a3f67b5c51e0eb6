/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys that cannot be used, and which peers get in with a key set. */
#include "test_tcp_keys.h"

/* -------------------------------------------------------------------------------------------------------------- keys */

static void test_keys_that_cannot_be_used(void **state)
{
    static const struct {
        const char *key;
        mode_t mode;
        int error;
        const char *said;
    } wrong[] = {
        {"short", 0600, -EACCES, "16 to 1024 bytes"},
        {"long enough to be a key", 0644, -EACCES, "chmod 600"},
        {NULL, 0, -ENOENT, "is missing"},
    };
    struct ofp_info info = fake_info(false);
    struct ofp_domain_attr attr = {0};
    struct ofp_domain *domain;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (int i = 0; i < 3; i++) {
        char path[] = "/tmp/ofipy-key-XXXXXX";

        if (wrong[i].key)
            write_key(path, wrong[i].key, wrong[i].mode);
        setenv("OFIPY_AUTH_KEY_FILE", path, 1);
        assert_int_equal(ofp_domain_open(fake_provider(), &info, &attr, &domain, text, sizeof(text)), wrong[i].error);
        assert_non_null(strstr(text, path));
        assert_non_null(strstr(text, wrong[i].said));
        unsetenv("OFIPY_AUTH_KEY_FILE");
        unlink(path);
    }
}

#define KEY "the key of these tests"

static void test_the_same_key(void **state)
{
    struct side a, b;
    uint32_t self;
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    (void)state;
    open_with(&a, KEY);
    open_with(&b, KEY);
    sides_meet(&a, &b);
    assert_int_equal(try_to_talk(&a, &b), 0);
    assert_int_equal(try_to_talk(&b, &a), 0);
    /* And to oneself. */
    assert_int_equal(ofp_endpoint_address(a.endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(a.av, address, length, &self), 0);
    post(&a, tagged(OFP_TRECV, self, 3, address, 1, 1));
    post(&a, tagged(OFP_TSEND, self, 3, "x", 1, 1));
    assert_int_equal(next_completion(&a, NULL).error, 0);
    assert_int_equal(next_completion(&a, NULL).error, 0);
    side_close(&a);
    side_close(&b);
}

static void test_both_prove_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct side a, b;
        uint8_t bytes[2] = {1, 2}, room[2] = {0};

        open_with(&a, KEY);
        open_with(&b, KEY);
        sides_meet(&a, &b);
        post(&a, tagged(OFP_TRECV, a.peer, 1, &room[0], 1, 2));
        post(&b, tagged(OFP_TRECV, b.peer, 1, &room[1], 1, 2));
        post(&a, tagged(OFP_TSEND, a.peer, 1, &bytes[0], 1, 1));
        post(&b, tagged(OFP_TSEND, b.peer, 1, &bytes[1], 1, 1));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(next_completion(&a, &b).error, 0);
            assert_int_equal(next_completion(&b, &a).error, 0);
        }
        assert_int_equal(room[0], 2);
        side_close(&a);
        side_close(&b);
    }
}

/* Each side is told who has what, and nothing about the key. */
static void test_other_keys_and_none(void **state)
{
    static const struct {
        const char *first, *second;
        int error;
        const char *client, *server;
    } pairs[] = {
        {KEY, "quite another key than that", EACCES, "the peer has another key", "the peer has another key"},
        {KEY, NULL, ECONNREFUSED, "this side has a key", "the peer has a key and this side has none"},
        {NULL, KEY, ECONNREFUSED, "the peer has a key and this side has none", "this side has a key"},
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct side a, b;
        char reason[OFP_TEXT_MAX];

        open_with(&a, pairs[i].first);
        open_with(&b, pairs[i].second);
        sides_meet(&a, &b);
        is_warned_of("what was before");
        assert_int_equal(try_to_talk_or(&a, &b, reason), pairs[i].error);
        assert_non_null(strstr(reason, pairs[i].client));
        assert_non_null(strstr(reason, "OFIPY_AUTH_KEY_FILE"));
        assert_null(strstr(reason, KEY));
        ofp_domain_progress(b.domain);
        assert_true(is_warned_of(pairs[i].server));
        side_close(&a);
        side_close(&b);
    }
}

/* A peer that offers a proof and does not have it gets nothing, whatever it sends. */
static void test_nothing_before_the_proof(void **state)
{
    struct side side;
    struct tcp_control control = {.type = TCP_CONNREQ,
                                  .magic = TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION,
                                  .capabilities = TCP_CAPABILITY_AUTHENTICATION};
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    struct ofp_endpoint_statistics statistics;
    uint8_t answer[TCP_CONTROL_SIZE + TCP_RDM_SIZE], greeting[TCP_HEADER_BASE + 40], byte;

    (void)state;
    open_with(&side, KEY);
    for (int i = 0; i < 4; i++) {
        int fd = raw_connect(&side);

        raw_request(fd, control, &rdm);
        assert_true(raw_read(&side, fd, answer, sizeof(answer)));
        assert_true(raw_read(&side, fd, greeting, sizeof(greeting)));
        if (i == 0) {
            raw_send(fd, (struct tcp_header){.op = TCP_TAG, .payload = 1}, "x", 1);
        } else {
            /* Its own nonce, sent back to it; no proof comes that could be. */
            raw_write(fd, greeting, sizeof(greeting));
            for (int turn = 0; turn < 50; turn++)
                ofp_domain_progress(side.domain);
            assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
            assert_int_equal(errno, EAGAIN);
            if (i == 1)
                raw_send(fd, (struct tcp_header){.op = TCP_GOODBYE}, NULL, 0);
            else if (i == 2)
                raw_send(fd, (struct tcp_header){.op = TCP_PROOF}, NULL, 0);
            else
                raw_send(fd, (struct tcp_header){.op = TCP_TAG, .payload = 1}, "x", 1);
        }
        raw_is_dropped(&side, fd);
    }
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(statistics.unexpected_messages, 0);
    assert_int_equal(statistics.peers_up, 0);
    side_close(&side);
}

/* A stock peer is told in a way that it understands. */
static void test_a_stock_peer_is_refused(void **state)
{
    struct side side;
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    uint8_t answer[TCP_CONTROL_SIZE + 1];
    int fd;

    (void)state;
    open_with(&side, KEY);
    fd = raw_connect(&side);
    raw_request(fd, (struct tcp_control){.type = TCP_CONNREQ}, &rdm);
    assert_true(raw_read(&side, fd, answer, sizeof(answer)));
    assert_int_equal(answer[1], TCP_NACK);
    raw_is_dropped(&side, fd);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_cannot_be_used), cmocka_unit_test(test_the_same_key),
        cmocka_unit_test(test_both_prove_at_once),       cmocka_unit_test(test_other_keys_and_none),
        cmocka_unit_test(test_nothing_before_the_proof), cmocka_unit_test(test_a_stock_peer_is_refused),
    };

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
