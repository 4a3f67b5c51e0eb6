/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connected endpoints with a key set: neither program hears a word of the other side before both have proven that they have
 * it, whatever else is sent.
 */
#include "test_tcp_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "proof/sha256.h"

#define KEY "the key of these tests"
#define NEWER (TCP_EXTENSION_VERSION + 1)
#define HELLO_SIZE (TCP_HEADER_BASE + 5 * 8)
#define PROOF_MESSAGE_SIZE (TCP_HEADER_BASE + TCP_PROOF_SIZE)
#define NONCE_SIZE (TCP_NONCE_WORDS * 8)
/* Of the accepted endpoints, bytes of unexpected messages: less than the default's share for one peer. */
#define LIMIT (UINT64_C(2) << 20)

static void node_open_with(struct node *node, const char *key)
{
    char path[] = "/tmp/ofipy-key-XXXXXX";
    int fd;

    if (key) {
        fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, key, strlen(key)), (ssize_t)strlen(key));
        assert_int_equal(fchmod(fd, 0600), 0);
        close(fd);
    }
    setenv("OFIPY_AUTH_KEY_FILE", key ? path : "", 1);
    node_open(node, OFP_PROGRESS_MANUAL);
    unsetenv("OFIPY_AUTH_KEY_FILE");
    if (key)
        unlink(path);
}

static void hears_nothing(struct node *node)
{
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX];

    for (int i = 0; i < 20; i++)
        ofp_domain_progress(node->domain);
    assert_int_equal(ofp_eq_read(node->eq, &event, data), 0);
}

static void test_other_keys_and_none(void **state)
{
    static const struct {
        const char *server, *client;
        int error;
    } pairs[] = {
        {KEY, "quite another key than that", EACCES},
        {KEY, NULL, ECONNREFUSED},
        {NULL, KEY, EACCES},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct node server, client;
        struct ofp_passive *passive;
        struct ofp_endpoint *endpoint;
        char data[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
        size_t length = sizeof(data);

        node_open_with(&server, pairs[i].server);
        node_open_with(&client, pairs[i].client);
        server.other = &client;
        client.other = &server;
        passive = listener_open(&server, 0, true);
        endpoint = endpoint_open(&client, 0);
        assert_int_equal(ask(endpoint, passive, "please"), 0);
        expect_event(&client, OFP_EVENT_CONNECTED, pairs[i].error, "");
        assert_int_equal(ofp_connection_status(endpoint, data, &length, text, sizeof(text)), -pairs[i].error);
        assert_non_null(strstr(text, "OFIPY_AUTH_KEY_FILE"));
        hears_nothing(&server);
        assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
        assert_int_equal(ofp_passive_close(passive), 0);
        node_close(&server);
        node_close(&client);
    }
}

/* -------------------------------------------------------------------------------------------------------- bare sockets */

static void raw_write(int fd, const void *bytes, size_t length)
{
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* `version`: that of the extension that the message says; 0: it says nothing of the extension. */
static void raw_control(int fd, enum tcp_control_type type, uint8_t version, const char *said)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control = {.type = (uint8_t)type,
                                  .private_size = (uint16_t)strlen(said),
                                  .magic = version ? TCP_EXTENSION_MAGIC | version : 0,
                                  .capabilities = version ? TCP_CAPABILITY_AUTHENTICATION : 0};

    /* Whoever says a newer version speaks this one too: else it is refused before any proof. */
    if (version > TCP_EXTENSION_VERSION)
        control.capabilities |= UINT64_C(1) << TCP_CAPABILITY_EARLIER_SHIFT;
    tcp_control_encode(&control, bytes);
    memcpy(bytes + TCP_CONTROL_SIZE, said, strlen(said));
    raw_write(fd, bytes, TCP_CONTROL_SIZE + strlen(said));
}

static void expect_control(struct node *node, int fd, enum tcp_control_type type, const char *said)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control;

    assert_true(raw_read(node, fd, bytes, TCP_CONTROL_SIZE));
    assert_int_equal(tcp_control_decode(bytes, &control), 0);
    assert_int_equal(control.type, type);
    assert_int_equal(control.private_size, strlen(said));
    assert_true(raw_read(node, fd, bytes, control.private_size));
    assert_memory_equal(bytes, said, control.private_size);
}

/* It hangs up, whatever it says before. */
static void expect_end(struct node *node, int fd)
{
    char byte;

    while (raw_read(node, fd, &byte, 1))
        ;
    close(fd);
}

static void raw_message(int fd, struct tcp_header header, const uint8_t *words)
{
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size;

    size = tcp_header_encode(&header, 0, false, bytes);
    if (words)
        memcpy(bytes + TCP_HEADER_BASE, words, size - TCP_HEADER_BASE);
    raw_write(fd, bytes, size);
}

static uint8_t *put_address(uint8_t *to, const union tcp_address *address)
{
    *to++ = 4;
    memcpy(to, &address->v4.sin_addr, 4);
    memcpy(to + 4, &address->v4.sin_port, 2);
    return to + 6;
}

/*
 * What the README says of it, for whoever has connected with `fd` and said this version of the extension; role 'c' is its
 * own.
 */
static void proof_of(char role, int fd, uint8_t version, const uint8_t *nonce, const uint8_t *their_nonce,
                     uint8_t proof[TCP_PROOF_SIZE])
{
    union tcp_address own, theirs;
    socklen_t length = sizeof(own);
    uint8_t bytes[128], *end = bytes;

    assert_int_equal(getsockname(fd, &own.any, &length), 0);
    assert_int_equal(getpeername(fd, &theirs.any, &length), 0);
    *end++ = (uint8_t)role;
    memcpy(end, nonce, NONCE_SIZE);
    memcpy(end + NONCE_SIZE, their_nonce, NONCE_SIZE);
    end = put_address(put_address(end + 2 * NONCE_SIZE, &own), &theirs);
    *end++ = version;
    if (version != TCP_EXTENSION_VERSION)
        *end++ = TCP_EXTENSION_VERSION;
    *end++ = TCP_CAPABILITY_AUTHENTICATION;
    ofpi_hmac_compute((const uint8_t *)KEY, strlen(KEY), bytes, (size_t)(end - bytes), proof);
}

static void test_a_stock_client_is_refused(void **state)
{
    struct node server;
    struct ofp_passive *passive;
    int fd;

    (void)state;
    node_open_with(&server, KEY);
    passive = listener_open(&server, 0, true);
    fd = raw_connect(passive);
    raw_request(fd, "let me in");
    expect_control(&server, fd, TCP_NACK, "");
    expect_end(&server, fd);
    hears_nothing(&server);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&server);
}

static struct ofp_endpoint *endpoint_open_limited(struct node *node, uint64_t request)
{
    struct ofp_endpoint_attr attr = {
        .tx_cq = node->cq, .rx_cq = node->cq, .eq = node->eq, .request = request, .unexpected_limit = LIMIT};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_endpoint_open(node->domain, &attr, &endpoint, text, sizeof(text)), 0);
    return endpoint;
}

static uint64_t decode_grant(const uint8_t *bytes, enum tcp_op op)
{
    struct tcp_header header;

    assert_int_equal(tcp_header_decode(bytes, false, true, &header), 0);
    assert_int_equal(header.op, op);
    return header.words[0];
}

/* The listener grants nothing beyond the minimum, and the accepted endpoint its share of its own limit. */
static void expect_share_of_limit(struct node *server, int fd, const uint8_t hello[HELLO_SIZE])
{
    uint8_t credit[TCP_HEADER_BASE + 8];
    uint64_t granted;

    assert_int_equal(decode_grant(hello, TCP_HELLO), 0);
    assert_true(raw_read(server, fd, credit, sizeof(credit)));
    granted = TCP_WINDOW_MIN + decode_grant(credit, TCP_CREDIT);
    assert_true(granted > TCP_WINDOW_MIN && granted <= LIMIT / 16);
}

enum attempt {
    NO_PROOF_BUT_A_MESSAGE,
    NO_PROOF_BUT_A_REQUEST,
    REFLECTED,
    REPLAYED,
    GUESSED,
    RAISED,  /* the client says this side's version, and the listener receives a newer one */
    LOWERED, /* the client says a newer version, and the listener receives its own */
    PROVEN,
    PROVEN_AS_NEWER, /* the client says a newer version, and the listener receives that */
    ATTEMPTS
};

/* Beside the attempts that fail are those that succeed, which shows that they do not fail for another reason. */
static void test_clients_that_prove_nothing(void **state)
{
    struct node server;
    struct ofp_passive *passive;
    uint8_t old_nonce[NONCE_SIZE] = {0};

    (void)state;
    node_open_with(&server, KEY);
    passive = listener_open(&server, 0, true);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint8_t hello[HELLO_SIZE], own_hello[40] = {0}, right[TCP_PROOF_SIZE], proof[PROOF_MESSAGE_SIZE];
        const uint8_t *nonce = hello + HELLO_SIZE - NONCE_SIZE;
        uint8_t received = attempt == RAISED || attempt == PROVEN_AS_NEWER ? NEWER : TCP_EXTENSION_VERSION;
        uint8_t said = attempt == LOWERED || attempt == PROVEN_AS_NEWER ? NEWER : TCP_EXTENSION_VERSION;
        int fd = raw_connect(passive);

        raw_control(fd, TCP_CONNREQ, received, "too soon");
        expect_control(&server, fd, TCP_CONNRESP, "");
        assert_true(raw_read(&server, fd, hello, sizeof(hello)));
        if (attempt >= REFLECTED) {
            memset(own_hello + 8, attempt, NONCE_SIZE);
            if (attempt == REFLECTED)
                memcpy(own_hello + 8, nonce, NONCE_SIZE);
            raw_message(fd, (struct tcp_header){.op = TCP_HELLO}, own_hello);
            hears_nothing(&server);
            /* The listener keeps its own proof back until it has ours. */
            assert_int_equal(recv(fd, own_hello, 1, MSG_DONTWAIT), -1);
            assert_int_equal(errno, EAGAIN);
            proof_of(attempt == REFLECTED ? 'a' : 'c', fd, said, own_hello + 8, attempt == REPLAYED ? old_nonce : nonce,
                     right);
        }
        memcpy(old_nonce, nonce, NONCE_SIZE);
        if (attempt == NO_PROOF_BUT_A_MESSAGE)
            raw_message(fd, (struct tcp_header){.op = TCP_TAG, .tag = 7}, NULL);
        else if (attempt == NO_PROOF_BUT_A_REQUEST)
            raw_control(fd, TCP_CONNREQ, received, "now");
        else if (attempt == GUESSED)
            raw_message(fd, (struct tcp_header){.op = TCP_PROOF}, NULL);
        else
            raw_message(fd, (struct tcp_header){.op = TCP_PROOF}, right);
        hears_nothing(&server);
        if (attempt < PROVEN) {
            expect_end(&server, fd);
            hears_nothing(&server);
            continue;
        }
        assert_true(raw_read(&server, fd, proof, sizeof(proof)));
        assert_int_equal(proof[1], TCP_PROOF);
        proof_of('a', fd, said, own_hello + 8, nonce, right);
        assert_memory_equal(proof + TCP_HEADER_BASE, right, TCP_PROOF_SIZE);
        raw_control(fd, TCP_CONNREQ, received, "now");
        {
            struct ofp_event event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "now");
            struct ofp_endpoint *endpoint = endpoint_open_limited(&server, event.handle);

            assert_int_equal(ofp_accept(endpoint, "welcome", 7), 0);
            expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
            expect_control(&server, fd, TCP_CONNRESP, "welcome");
            expect_share_of_limit(&server, fd, hello);
            close(fd);
            expect_event(&server, OFP_EVENT_SHUTDOWN, OFP_EPEERLOST, "");
            assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
        }
    }
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&server);
}

/* ---------------------------------------------------------------------------------------------------------- listeners */

enum answer { STOCK_ACCEPTS, STOCK_REJECTS, REFLECTS, ACCEPTS_WITHOUT, ANSWERS };

static void test_listeners_that_prove_nothing(void **state)
{
    (void)state;
    for (int answer = 0; answer < ANSWERS; answer++) {
        static const int errors[ANSWERS] = {EACCES, EACCES, EACCES, EPROTO};
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof(address);
        uint8_t hello[HELLO_SIZE], proof[PROOF_MESSAGE_SIZE];
        struct node client;
        struct ofp_endpoint *endpoint;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

        assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        node_open_with(&client, KEY);
        endpoint = endpoint_open(&client, 0);
        assert_int_equal(ofp_connect(endpoint, &address, length, "a secret", 8), 0);
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        /* It says nothing to somebody who has proven nothing. */
        expect_control(&client, fd, TCP_CONNREQ, "");
        raw_control(fd, answer == STOCK_REJECTS ? TCP_NACK : TCP_CONNRESP,
                    answer >= REFLECTS ? TCP_EXTENSION_VERSION : 0, "hear me");
        if (answer >= REFLECTS) {
            assert_true(raw_read(&client, fd, hello, sizeof(hello)));
            raw_write(fd, hello, sizeof(hello));
            assert_true(raw_read(&client, fd, proof, sizeof(proof)));
        }
        if (answer == REFLECTS)
            raw_write(fd, proof, sizeof(proof));
        else if (answer == ACCEPTS_WITHOUT)
            raw_control(fd, TCP_CONNRESP, TCP_EXTENSION_VERSION, "hear me");
        expect_event(&client, OFP_EVENT_CONNECTED, errors[answer], "");
        expect_end(&client, fd);
        close(listener);
        assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
        node_close(&client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_keys_and_none),
        cmocka_unit_test(test_a_stock_client_is_refused),
        cmocka_unit_test(test_clients_that_prove_nothing),
        cmocka_unit_test(test_listeners_that_prove_nothing),
    };

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
