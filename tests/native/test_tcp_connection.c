/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected endpoints over TCP: with each other, with and without the extension or a key, and with a bare socket. */
#include "test_tcp_listener.h"

#include <sys/stat.h>

#define LENGTH 300000

static void talk(struct node *from_node, struct ofp_endpoint *from, struct node *to_node, struct ofp_endpoint *to)
{
    static char out[LENGTH], in[LENGTH];

    for (uint64_t length = 1; length <= LENGTH;
         length = length < LENGTH && length * 40 > LENGTH ? LENGTH : length * 40) {
        memset(out, (int)length, length);
        assert_int_equal(post(to, OFP_RECV, OFP_PEER_ANY, in, length, 2), 1);
        assert_int_equal(post(from, OFP_SEND, 0, out, length, 1), 1);
        expect_completion(to_node, 2, 0);
        expect_completion(from_node, 1, 0);
        assert_memory_equal(in, out, length);
    }
}

static void there_and_back(bool by_closing)
{
    struct node server, client;
    struct ofp_endpoint *accepted, *connected;

    nodes_open(&server, &client);
    connect_pair(&server, &client, &accepted, &connected);
    talk(&client, connected, &server, accepted);
    talk(&server, accepted, &client, connected);
    if (by_closing)
        assert_int_equal(ofp_endpoint_close(connected, SECOND), 0);
    else
        assert_int_equal(ofp_shutdown(connected), 0);
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    if (!by_closing)
        assert_int_equal(ofp_endpoint_close(connected, SECOND), 0);
    assert_int_equal(ofp_endpoint_close(accepted, SECOND), 0);
    node_close(&server);
    node_close(&client);
}

static void test_there_and_back(void **state)
{
    (void)state;
    there_and_back(false);
    there_and_back(true);
}

static void test_as_stock_endpoints(void **state)
{
    setenv("OFIPY_TCP_EXTENSION", "no", 1);
    test_there_and_back(state);
    unsetenv("OFIPY_TCP_EXTENSION");
}

static void test_with_a_key(void **state)
{
    char path[] = "/tmp/ofipy-key-XXXXXX";
    int fd = mkstemp(path);

    assert_int_equal(write(fd, "a key that is long enough", 25), 25);
    assert_int_equal(fchmod(fd, 0600), 0);
    close(fd);
    setenv("OFIPY_AUTH_KEY_FILE", path, 1);
    test_there_and_back(state);
    unsetenv("OFIPY_AUTH_KEY_FILE");
    unlink(path);
}

static void test_a_request_is_rejected(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *endpoint;
    struct ofp_event event;

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    endpoint = endpoint_open(&client, 0);
    assert_int_equal(ask(endpoint, passive, "please"), 0);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "please");
    assert_int_equal(ofp_passive_reject(passive, event.handle, "never", 5), 0);
    expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "never");
    assert_int_equal(status(endpoint, "never"), -ECONNREFUSED);
    assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&server);
    node_close(&client);
}

/* -------------------------------------------------------------------------------------------------------- bare sockets */

/* libfabric sends no goodbye: the end of its stream is one, unless it is in the middle of something. */
static void test_a_stock_client(void **state)
{
    struct node server;
    struct ofp_passive *passive;

    (void)state;
    node_open(&server, OFP_PROGRESS_MANUAL);
    passive = listener_open(&server, 0, true);
    for (int cut = 0; cut < 2; cut++) {
        struct tcp_header header = {.op = TCP_MSG, .payload = 5};
        uint8_t answer[TCP_CONTROL_SIZE + 7], bytes[TCP_HEADER_MAX];
        char room[8];
        int fd = raw_connect(passive);
        struct ofp_endpoint *endpoint;

        raw_request(fd, "hello");
        endpoint = endpoint_open(&server, expect_event(&server, OFP_EVENT_CONNREQ, 0, "hello").handle);
        assert_int_equal(post(endpoint, OFP_RECV, OFP_PEER_ANY, room, sizeof(room), 2), 1);
        assert_int_equal(ofp_accept(endpoint, "welcome", 7), 0);
        expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
        assert_true(raw_read(&server, fd, answer, sizeof(answer)));
        assert_int_equal(answer[1], TCP_CONNRESP);
        assert_memory_equal(answer + TCP_CONTROL_SIZE, "welcome", 7);
        assert_int_equal(send(fd, bytes, tcp_header_encode(&header, 0, false, bytes), 0), TCP_HEADER_BASE);
        assert_int_equal(send(fd, "hello", cut ? 3 : 5, 0), cut ? 3 : 5);
        if (!cut)
            expect_completion(&server, 2, 0);
        /* Not the tagged ones: that is what its endpoints do not survive. */
        assert_int_equal(post(endpoint, OFP_TSEND, 0, "no", 2, 3), -EOPNOTSUPP);
        close(fd);
        if (cut)
            expect_completion(&server, 2, ECONNRESET);
        expect_event(&server, OFP_EVENT_SHUTDOWN, cut ? ECONNRESET : 0, "");
        assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
    }
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&server);
}

static void test_hostile_requests(void **state)
{
    static const uint8_t changes[][2] = {{0, 2}, {1, 1}, {1, 200}, {2, 2}};
    struct node server;
    struct ofp_passive *passive;
    int half, gone;

    (void)state;
    node_open(&server, OFP_PROGRESS_MANUAL);
    passive = listener_open(&server, 0, true);
    half = raw_connect(passive);
    assert_int_equal(send(half, "\3\0\0\5", 4, 0), 4);
    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct tcp_control control = {.type = TCP_CONNREQ};
        uint8_t bytes[TCP_CONTROL_SIZE];
        int fd = raw_connect(passive);

        tcp_control_encode(&control, bytes);
        bytes[changes[i][0]] = changes[i][1];
        assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
        assert_false(raw_read(&server, fd, bytes, 1));
        close(fd);
    }
    gone = raw_connect(passive);
    forget_warnings();
    assert_int_equal(send(gone, "\x16\x03\x01", 3, 0), 3);
    assert_false(raw_read(&server, gone, &(char){0}, 1));
    close(gone);
    expect_warning("speaks TLS");
    /* Who has gone by the time of the answer is found out then. */
    gone = raw_connect(passive);
    raw_request(gone, "bye");
    close(gone);
    {
        struct ofp_endpoint *endpoint =
            endpoint_open(&server, expect_event(&server, OFP_EVENT_CONNREQ, 0, "bye").handle);

        assert_int_equal(ofp_accept(endpoint, NULL, 0), 0);
        assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
    }
    while (ofp_eq_read(server.eq, &(struct ofp_event){0}, (char[OFP_EVENT_DATA_MAX]){0}) == 1)
        ;
    assert_int_equal(ofp_passive_close(passive), 0);
    close(half);
    node_close(&server);
}

/* No reset: that would take with it what was said before. */
static void expect_end(int fd)
{
    struct timeval patience = {.tv_sec = 5};
    char byte;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

static void expect_refusal(struct node *server, int fd)
{
    uint8_t answer[TCP_CONTROL_SIZE];

    assert_true(raw_read(server, fd, answer, sizeof(answer)));
    assert_int_equal(answer[1], TCP_NACK);
    expect_end(fd);
}

/* Requests that are unanswered, half here, hardly begun, and not looked at yet, when the listener closes. */
static void test_nobody_waits_for_a_closed_listener(void **state)
{
    struct tcp_control control = {.type = TCP_CONNREQ, .private_size = 5};
    uint8_t bytes[TCP_CONTROL_SIZE];
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *endpoint;
    int half, begun, late;

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    half = raw_connect(passive);
    begun = raw_connect(passive);
    tcp_control_encode(&control, bytes);
    assert_int_equal(send(half, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(send(half, "he", 2, 0), 2);
    assert_int_equal(send(begun, bytes, 9, 0), 9);
    endpoint = endpoint_open(&client, 0);
    assert_int_equal(ask(endpoint, passive, "please"), 0);
    expect_event(&server, OFP_EVENT_CONNREQ, 0, "please");
    late = raw_connect(passive);
    raw_request(late, "hello");
    assert_int_equal(ofp_passive_close(passive), 0);
    expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "");
    expect_refusal(&server, half);
    expect_refusal(&server, late);
    expect_end(begun);
    assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
    node_close(&server);
    node_close(&client);
}

/* They take the connection, and say nothing, half of something, or something else. */
static void test_listeners_that_do_not_answer(void **state)
{
    static const struct {
        const char *said;
        int error;
    } answers[] = {
        {"", ETIMEDOUT}, {"\3\1", ETIMEDOUT}, {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", EPROTO}};

    (void)state;
    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
        socklen_t length = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
        struct ofp_endpoint *endpoint;
        struct node client;

        assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
        node_open(&client, OFP_PROGRESS_MANUAL);
        unsetenv("OFIPY_CONNECT_TIMEOUT");
        endpoint = endpoint_open(&client, 0);
        assert_int_equal(ofp_connect(endpoint, &address, length, "hello", 5), 0);
        fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, answers[i].said, strlen(answers[i].said), 0), strlen(answers[i].said));
        expect_event(&client, OFP_EVENT_CONNECTED, answers[i].error, "");
        assert_int_equal(status(endpoint, ""), -answers[i].error);
        assert_int_equal(ofp_endpoint_close(endpoint, SECOND), 0);
        node_close(&client);
        close(fd);
        close(listener);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_as_stock_endpoints),
        cmocka_unit_test(test_with_a_key),
        cmocka_unit_test(test_a_request_is_rejected),
        cmocka_unit_test(test_a_stock_client),
        cmocka_unit_test(test_hostile_requests),
        cmocka_unit_test(test_nobody_waits_for_a_closed_listener),
        cmocka_unit_test(test_listeners_that_do_not_answer),
    };

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
