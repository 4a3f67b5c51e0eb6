/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which connections are encrypted, by the settings of both sides and by whether they are on one host. OFIPY_HOST_ID makes
 * an endpoint take itself for one of another host, as behind a forwarder: the addresses still say the same host. `auto`
 * encrypts where there are certificates; here TLS uses the key all the same.
 */
#include "test_tcp_keys.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>

#include "address/interface.h"
#include "connection/connection.h"
#include "ofipy/connect.h"
#include "stream/library.h"
#include "stream/tls.h"

#define KEY "the key of these tests"

static bool addresses_are_unknown;

/* In place of the C library's. */
int getifaddrs(struct ifaddrs **all)
{
    int (*real)(struct ifaddrs **) = (int (*)(struct ifaddrs **))(uintptr_t)dlsym(RTLD_NEXT, "getifaddrs");

    if (addresses_are_unknown) {
        errno = ENOBUFS;
        return -1;
    }
    return real(all);
}

/* A client whose first bytes arrive as soon as this side has found that there are none. */
static struct tcp_stream *late;

/* In place of the C library's. */
ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    ssize_t (*real)(int, void *, size_t, int) =
        (ssize_t (*)(int, void *, size_t, int))(uintptr_t)dlsym(RTLD_NEXT, "recv");
    ssize_t result = real(fd, bytes, length, flags);
    struct tcp_stream *stream = late;

    if (result < 0 && errno == EAGAIN && flags & MSG_PEEK && stream && stream->fd != fd) {
        late = NULL;
        assert_int_equal(stream->ops->writev(stream, NULL, 0), -EAGAIN);
        errno = EAGAIN;
    }
    return result;
}

struct setting {
    const char *encryption, *key, *host; /* `host`: OFIPY_HOST_ID */
};

static void open_as(struct side *side, struct setting setting)
{
    struct tcp_domain *domain;

    setenv("OFIPY_ENCRYPTION", setting.encryption, 1);
    setenv("OFIPY_HOST_ID", setting.host ? setting.host : "", 1);
    side_open_with(side, setting.key);
    domain = tcp_endpoint_of(side->endpoint)->domain;
    if (setting.key && strcmp(setting.encryption, "auto") == 0) {
        char text[OFP_TEXT_MAX];

        assert_int_equal(domain->encryption, TCP_ENCRYPT_NONE);
        domain->encryption = TCP_ENCRYPT_BETWEEN_HOSTS;
        assert_int_equal(tcp_core->host_id(&domain->host_id, text, sizeof(text)), 0);
    }
    unsetenv("OFIPY_ENCRYPTION");
    unsetenv("OFIPY_HOST_ID");
}

static void open_both(struct side sides[2], struct setting first, struct setting second)
{
    open_as(&sides[0], first);
    open_as(&sides[1], second);
    sides_meet(&sides[0], &sides[1]);
    is_warned_of("what was before");
}

static void close_both(struct side sides[2])
{
    side_close(&sides[0]);
    side_close(&sides[1]);
}

static struct ofp_security read_security(struct side *side)
{
    struct ofp_security found;

    assert_int_equal(ofp_peer_security(side->endpoint, side->peer, &found), 0);
    return found;
}

/* ------------------------------------------------------------------------------------------------------ what is agreed */

static void test_settings_that_agree(void **state)
{
    static const struct {
        struct setting from, to;
        bool proven, encrypted;
    } pairs[] = {
        {{"auto", NULL, NULL}, {"auto", NULL, NULL}, false, false},
        {{"off", NULL, NULL}, {"auto", NULL, NULL}, false, false},
        {{"off", KEY, NULL}, {"off", KEY, NULL}, true, false},
        {{"off", KEY, "a"}, {"off", KEY, "b"}, true, false},
        {{"auto", KEY, NULL}, {"auto", KEY, NULL}, true, false},
        {{"auto", KEY, "a"}, {"auto", KEY, "b"}, true, true},
        {{"auto", KEY, NULL}, {"required", KEY, NULL}, true, true},
        {{"required", KEY, NULL}, {"auto", KEY, NULL}, true, true},
        {{"required", KEY, NULL}, {"required", KEY, NULL}, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct side sides[2];

        open_both(sides, pairs[i].from, pairs[i].to);
        assert_int_equal(try_to_talk(&sides[0], &sides[1]), 0);
        assert_int_equal(try_to_talk(&sides[1], &sides[0]), 0);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(read_security(&sides[j]).proven, pairs[i].proven);
            assert_int_equal(read_security(&sides[j]).encrypted, pairs[i].encrypted);
        }
        close_both(sides);
    }
}

/* Both connect at once, and neither reaches the other in plain. */
static void test_both_find_another_host(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        struct side sides[2];
        uint8_t bytes[2] = {1, 2}, room[2] = {0};

        open_both(sides, (struct setting){"auto", KEY, "a"}, (struct setting){"auto", KEY, "b"});
        for (int i = 0; i < 2; i++)
            post(&sides[i], tagged(OFP_TRECV, sides[i].peer, 1, &room[i], 1, 2));
        for (int i = 0; i < 2; i++)
            post(&sides[i], tagged(OFP_TSEND, sides[i].peer, 1, &bytes[i], 1, 1));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(next_completion(&sides[0], &sides[1]).error, 0);
            assert_int_equal(next_completion(&sides[1], &sides[0]).error, 0);
        }
        assert_true(read_security(&sides[0]).encrypted);
        close_both(sides);
    }
}

/* ----------------------------------------------------------------------------------------------------- what is refused */

static void test_settings_that_refuse_each_other(void **state)
{
    static const struct {
        struct setting from, to;
        const char *caller, *called;
    } pairs[] = {
        {{"off", KEY, NULL}, {"auto", KEY, NULL}, "accepts encrypted connections alone", "is not encrypted"},
        {{"auto", KEY, NULL}, {"off", KEY, NULL}, "the peer encrypts none", "this side encrypts none"},
        {{"off", KEY, NULL}, {"required", KEY, NULL}, "accepts encrypted connections alone", "is not encrypted"},
        {{"required", KEY, NULL}, {"off", KEY, NULL}, "OFIPY_ENCRYPTION", "speaks TLS, and this side does not"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct side sides[2];
        char reason[OFP_TEXT_MAX];

        open_both(sides, pairs[i].from, pairs[i].to);
        assert_int_not_equal(try_to_talk_or(&sides[0], &sides[1], reason), 0);
        assert_non_null(strstr(reason, pairs[i].caller));
        assert_non_null(strstr(reason, "OFIPY_ENCRYPTION"));
        ofp_domain_progress(sides[1].domain);
        assert_true(is_warned_of(pairs[i].called));
        close_both(sides);
    }
}

enum moment { AMID_TLS, AMID_PROOF };

/* The connection that the side has accepted, once it has come so far. NULL: it has not. */
static struct tcp_connection *find_accepted(struct side *side, enum moment moment)
{
    struct ofp_list *all = &tcp_endpoint_of(side->endpoint)->connections;

    for (struct ofp_list *node = all->next; node != all; node = node->next) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

        if (!connection->connector &&
            (moment == AMID_TLS ? tcp_tls_has_answered(&connection->stream) : connection->state == TCP_PROVING))
            return connection;
    }
    return NULL;
}

/* A process that ends in a handshake has refused nothing, and its caller is not told so. */
static void test_an_end_is_no_refusal(void **state)
{
    static const struct {
        const char *encryption;
        enum moment moment;
    } cases[] = {
        {"off", AMID_PROOF},
        {"required", AMID_PROOF},
        {"required", AMID_TLS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct setting setting = {cases[i].encryption, KEY, NULL};
        struct tcp_connection *accepted = NULL;
        struct ofp_completion row;
        char reason[OFP_TEXT_MAX];
        struct side sides[2];
        uint8_t byte = 1;

        open_both(sides, setting, setting);
        post(&sides[0], tagged(OFP_TSEND, sides[0].peer, 1, &byte, 1, 1));
        while (!accepted) {
            ofp_domain_progress(sides[0].domain);
            ofp_domain_progress(sides[1].domain);
            accepted = find_accepted(&sides[1], cases[i].moment);
        }
        tcp_connection_discard(accepted);
        row = next_completion(&sides[0], NULL);
        ofp_reason(row.provider_error, reason, sizeof(reason));
        assert_int_equal(row.error, ECONNRESET);
        assert_non_null(strstr(reason, "ended"));
        close_both(sides);
    }
}

/* Another key is refused by name, with and without encryption. */
static void test_another_key_is_a_refusal(void **state)
{
    static const char *const encryptions[] = {"off", "required"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char reason[OFP_TEXT_MAX];
        struct side sides[2];

        open_both(sides, (struct setting){encryptions[i], KEY, NULL},
                  (struct setting){encryptions[i], "another key of these tests", NULL});
        assert_int_equal(try_to_talk_or(&sides[0], &sides[1], reason), EACCES);
        assert_non_null(strstr(reason, "OFIPY_AUTH_KEY_FILE"));
        close_both(sides);
    }
}

/* Whoever removes the demand from the request on the way gains nothing. */
static void test_a_request_that_does_not_demand_the_host(void **state)
{
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    struct tcp_control request = {.type = TCP_CONNREQ,
                                  .magic = TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION,
                                  .capabilities = TCP_CAPABILITY_AUTHENTICATION};
    uint8_t answer[TCP_CONTROL_SIZE + 1];
    struct side side;

    (void)state;
    open_as(&side, (struct setting){"auto", KEY, NULL});
    for (int demands = 0; demands < 2; demands++) {
        int fd = raw_connect(&side);

        request.capabilities |= demands ? TCP_CAPABILITY_HOST : 0;
        raw_request(fd, request, &rdm);
        assert_true(raw_read(&side, fd, answer, sizeof(answer)));
        assert_int_equal(answer[1], demands ? TCP_CONNRESP : TCP_NACK);
        if (!demands)
            assert_int_equal(answer[TCP_CONTROL_SIZE], TCP_REFUSED_UNENCRYPTED);
        close(fd);
    }
    side_close(&side);
}

/* ------------------------------------------------------------------------------------------------------ what is unknown */

/* The first address that is not a loopback one. False: this machine has none. */
static bool find_interface(struct tcp_interface *found)
{
    struct tcp_interface interfaces[TCP_INTERFACES_MAX];
    int count = tcp_interfaces_query(interfaces, NULL);

    for (int i = 0; i < count; i++)
        if (!tcp_address_is_loopback(&interfaces[i].address) && interfaces[i].address.any.sa_family == AF_INET) {
            *found = interfaces[i];
            return true;
        }
    return false;
}

static void test_unknown_addresses_are_of_other_hosts(void **state)
{
    struct tcp_interface interface;
    struct side sides[2];

    (void)state;
    if (!find_interface(&interface))
        skip();
    setenv("OFIPY_TCP_INTERFACE", interface.name, 1);
    open_both(sides, (struct setting){"auto", KEY, NULL}, (struct setting){"auto", KEY, NULL});
    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    addresses_are_unknown = true;
    assert_true(tcp_is_of_this_host(&interface.address));
    assert_false(tcp_is_known_of_this_host(&interface.address));
    assert_int_equal(try_to_talk(&sides[0], &sides[1]), 0);
    addresses_are_unknown = false;
    assert_true(read_security(&sides[0]).encrypted);
    assert_true(tcp_is_known_of_this_host(&interface.address));
    close_both(sides);
}

/* Either side alone may not know on which host it is. */
static void test_an_unknown_host_is_another_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct side sides[2];

        open_both(sides, (struct setting){"auto", KEY, NULL}, (struct setting){"auto", KEY, NULL});
        tcp_endpoint_of(sides[i].endpoint)->domain->host_id = 0;
        assert_int_equal(try_to_talk(&sides[0], &sides[1]), 0);
        assert_true(read_security(&sides[0]).encrypted);
        assert_true(read_security(&sides[1]).encrypted);
        close_both(sides);
    }
}

/* --------------------------------------------------------------------------------------------------------------- floods */

#define CLIENTS 20

static void start_client(struct side *side, struct tcp_tls_context *context, struct tcp_stream *stream)
{
    struct ofpi_key key = {.length = strlen(KEY)};
    struct ofpi_keyring *ring;

    memcpy(key.bytes, KEY, key.length);
    ring = ofpi_keyring_create(&key, 1);
    *stream = (struct tcp_stream){.ops = &tcp_plain_stream, .fd = raw_connect(side)};
    assert_int_equal(fcntl(stream->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(tcp_tls_start(stream, context, &(struct tcp_tls_side){.connector = true, .ring = ring}), 0);
    ofpi_keyring_release(ring);
}

/* Clients that have sent the first message of the handshake. */
static void start_handshakes(struct side *side, struct tcp_tls_context *context, struct tcp_stream streams[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++) {
        start_client(side, context, &streams[i]);
        assert_int_equal(streams[i].ops->writev(&streams[i], NULL, 0), -EAGAIN);
    }
}

/* The first byte tells TLS from the plain protocol, whenever it arrives. */
static void test_a_first_byte_that_comes_late(void **state)
{
    static const struct tcp_tls_files by_key;
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    struct tcp_tls_context *context;
    struct tcp_stream stream;
    char text[OFP_TEXT_MAX];
    ssize_t result = -EAGAIN;
    struct side side;

    (void)state;
    open_as(&side, (struct setting){"required", KEY, NULL});
    assert_int_equal(tcp_tls_context_create(&context, &by_key, text, sizeof(text)), 0);
    start_client(&side, context, &stream);
    late = &stream;
    while (result == -EAGAIN) {
        ofp_domain_progress(side.domain);
        if (!late)
            result = stream.ops->writev(&stream, NULL, 0);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(result, 0);
    stream.ops->close(&stream);
    side_close(&side);
    tcp_tls_context_free(context);
}

static int count_answered(const struct tcp_stream streams[CLIENTS])
{
    int count = 0;
    char byte;

    for (int i = 0; i < CLIENTS; i++)
        count += recv(streams[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    return count;
}

/* A peer that is up is served between the handshakes of a flood, of which each round serves one. */
static void test_handshakes_take_turns(void **state)
{
    static const struct tcp_tls_files by_key;
    struct tcp_stream streams[CLIENTS];
    struct tcp_tls_context *context;
    struct side sides[2];
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    uint8_t byte = 7, room = 0;
    char text[OFP_TEXT_MAX];
    int answered = 0, answered_before_message = CLIENTS;

    (void)state;
    open_both(sides, (struct setting){"required", KEY, NULL}, (struct setting){"required", KEY, NULL});
    assert_int_equal(try_to_talk(&sides[0], &sides[1]), 0);
    assert_int_equal(tcp_tls_context_create(&context, &by_key, text, sizeof(text)), 0);
    start_handshakes(&sides[1], context, streams);
    post(&sides[1], tagged(OFP_TRECV, OFP_PEER_ANY, 1, &room, 1, 2));
    post(&sides[0], tagged(OFP_TSEND, sides[0].peer, 1, &byte, 1, 1));
    ofp_domain_progress(sides[0].domain);
    while (answered < CLIENTS) {
        int before = answered;

        ofp_domain_progress(sides[1].domain);
        answered = count_answered(streams);
        assert_in_range(answered, before, before + 1);
        if (room == byte && answered_before_message == CLIENTS)
            answered_before_message = answered;
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_in_range(answered_before_message, 0, 3);
    for (int i = 0; i < CLIENTS; i++)
        streams[i].ops->close(&streams[i]);
    close_both(sides);
    tcp_tls_context_free(context);
}

/* Members behind the same address as a flood wait for their turn, and have it by a timer. */
static void test_a_source_that_has_spent_its_credit_waits(void **state)
{
    const uint64_t step = UINT64_C(1000000), wait = 100 * UINT64_C(1000000);
    uint64_t begin = ofpi_clock_read();
    struct tcp_source *account;
    struct side sides[2];

    (void)state;
    open_both(sides, (struct setting){"required", KEY, NULL}, (struct setting){"required", KEY, NULL});
    for (int i = 0; i < 2; i++) {
        union tcp_address *address = &tcp_endpoint_of(sides[i].endpoint)->address;

        account = &tcp_endpoint_of(sides[i].endpoint)->poller->sources[tcp_source_find(address)];
        for (int count = 0; count < 26; count++)
            tcp_source_charge(account, step, begin);
    }
    assert_int_equal(try_to_talk(&sides[0], &sides[1]), 0);
    assert_true(ofpi_clock_read() - begin >= wait);
    /* The second side has accepted the connection, and seen a proof. */
    assert_true(account->spent == 0);
    close_both(sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_that_agree),
        cmocka_unit_test(test_both_find_another_host),
        cmocka_unit_test(test_settings_that_refuse_each_other),
        cmocka_unit_test(test_an_end_is_no_refusal),
        cmocka_unit_test(test_another_key_is_a_refusal),
        cmocka_unit_test(test_a_request_that_does_not_demand_the_host),
        cmocka_unit_test(test_unknown_addresses_are_of_other_hosts),
        cmocka_unit_test(test_an_unknown_host_is_another_one),
        cmocka_unit_test(test_a_first_byte_that_comes_late),
        cmocka_unit_test(test_handshakes_take_turns),
        cmocka_unit_test(test_a_source_that_has_spent_its_credit_waits),
    };
    char text[OFP_TEXT_MAX];

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    if (tcp_library_load(text, sizeof(text)) != 0) {
        fprintf(stderr, "%s\n", text);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
