/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of type MSG: the end of connections, and many of them. */
#include "connection_fixture.h"
#include "request_fixture.h"

/* What was posted still leaves, from the backlog too; nothing comes after. */
static void test_orderly_end(void **state)
{
    enum { MESSAGES = 400, LENGTH = 5000 }; /* beyond the inbox and the eager size */
    struct node server, client;
    struct ofp_endpoint *here, *there;
    ofp_request_t left;
    char *data = calloc(1, LENGTH), *room = calloc(1, LENGTH);

    (void)state;
    nodes_open(&server, &client);
    connect_pair(&server, &client, &here, &there);
    assert_int_equal(post(there, OFP_TRECV, 0, room, LENGTH, 1), 1);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(post(there, OFP_TSEND, 0, data, LENGTH, 2), 1);
    assert_int_equal(ofp_shutdown_request(there), -ENOTCONN);
    assert_int_equal(ofp_shutdown(there), 0);
    left = ofp_shutdown_request(there);
    assert_true(left > 0);
    assert_int_equal(post(there, OFP_TSEND, 0, data, LENGTH, 2), -ENOTCONN);
    assert_int_equal(request_test(left), 0);
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(post(here, OFP_TRECV, 0, room, LENGTH, 3), 1);
        expect_completion(&server, 3, 0);
    }
    for (int i = 0; i < MESSAGES; i++)
        expect_completion(&client, 2, 0);
    expect_completion(&client, 1, ECANCELED);
    assert_int_equal(request_take(left, SECOND).error, 0);
    assert_int_equal(request_take(ofp_shutdown_request(there), SECOND).error, 0);
    assert_int_equal(post(there, OFP_TRECV, 0, room, LENGTH, 4), 1);
    expect_completion(&client, 4, ECANCELED);
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    node_close(&client);
    node_close(&server);
    free(data);
    free(room);
}

/* What waits for the orderly end hears that it did not come. */
static void test_end_that_fails(void **state)
{
    struct node server, client;
    struct ofp_endpoint *here, *there;
    ofp_request_t left;
    char *data = calloc(1, 5000);

    (void)state;
    nodes_open(&server, &client);
    for (int way = 0; way < 2; way++) {
        connect_pair(&server, &client, &here, &there);
        assert_int_equal(post(there, OFP_TSEND, 0, data, 5000, 1), 1);
        assert_int_equal(ofp_shutdown(there), 0);
        left = ofp_shutdown_request(there);
        assert_int_equal(request_test(left), 0);
        assert_int_equal(ofp_endpoint_close(way == 0 ? here : there, 0), 0);
        expect_completion(&client, 1, ECANCELED);
        assert_int_equal(request_take(left, SECOND).error, way == 0 ? ESHUTDOWN : ECANCELED);
        if (way == 1)
            expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
        assert_int_equal(ofp_endpoint_close(way == 0 ? there : here, 0), 0);
    }
    node_close(&client);
    node_close(&server);
    free(data);
}

/* What the outcome was is told after the end, too, and who is second to shut down has done nothing wrong. */
static void test_what_happened_first_comes_first(void **state)
{
    struct node server, client;
    struct ofp_endpoint *here, *there;
    ofp_request_t left;
    char data[8] = "last", room[8], said[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(said);

    (void)state;
    nodes_open(&server, &client);
    connect_pair(&server, &client, &here, &there);
    assert_int_equal(post(here, OFP_TSEND, 0, data, 8, 1), 1);
    expect_completion(&server, 1, 0);
    assert_int_equal(ofp_shutdown(here), 0);
    expect_event(&client, OFP_EVENT_SHUTDOWN, 0, "");
    /* Of both sides, although they ask late. */
    assert_int_equal(request_take(ofp_connection_request(here), SECOND).error, 0);
    assert_int_equal(request_take(ofp_connection_request(there), SECOND).error, 0);
    assert_int_equal(ofp_connection_status(there, said, &length, text, sizeof(text)), -ESHUTDOWN);
    assert_int_equal(length, 7);
    assert_memory_equal(said, "welcome", 7);
    assert_int_equal(post(there, OFP_TRECV, 0, room, 8, 2), 1);
    expect_completion(&client, 2, 0);
    assert_string_equal(room, "last");
    assert_int_equal(ofp_shutdown(there), 0);
    left = ofp_shutdown_request(there);
    assert_int_equal(request_take(left, SECOND).error, 0);
    assert_int_equal(ofp_shutdown(there), -ENOTCONN);
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    node_close(&client);
    node_close(&server);
}

/* The other side closes: sends fail, receives end, except for what has come already. */
static void test_loss(void **state)
{
    struct node server, client;
    struct ofp_endpoint *here, *there;
    char *data = calloc(1, 5000), small[8] = "last", room[2][8];

    (void)state;
    nodes_open(&server, &client);
    connect_pair(&server, &client, &here, &there);
    assert_int_equal(post(here, OFP_TSEND, 0, data, 5000, 1), 1);
    assert_int_equal(post(there, OFP_TSEND, 0, small, 8, 2), 1);
    expect_completion(&client, 2, 0);
    assert_int_equal(post(here, OFP_RECV, 0, room[0], 8, 3), 1);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    expect_completion(&server, 1, ESHUTDOWN);
    expect_completion(&server, 3, ESHUTDOWN);
    assert_int_equal(post(here, OFP_TSEND, 0, data, 8, 4), -ENOTCONN);
    assert_int_equal(post(here, OFP_TRECV, 0, room[1], 8, 5), 1);
    expect_completion(&server, 5, 0);
    assert_string_equal(room[1], "last");
    assert_int_equal(post(here, OFP_TRECV, 0, room[1], 8, 6), 1);
    expect_completion(&server, 6, ESHUTDOWN);
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    node_close(&client);
    node_close(&server);
    free(data);
}

/* Both ends in one domain, and one receive context for the accepted ones. */
static void test_shared_receive_context(void **state)
{
    struct node node;
    struct ofp_receive_context_attr context_attr = {0};
    struct ofp_endpoint_attr attr = {0};
    struct ofp_passive *passive;
    struct ofp_endpoint *context, *clients[2], *servers[2];
    struct ofp_completion row;
    char data[8] = "shared", room[2][8], text[OFP_TEXT_MAX];

    (void)state;
    node_open(&node, OFP_PROGRESS_MANUAL);
    context_attr.cq = node.cq;
    assert_int_equal(ofp_receive_context_open(node.domain, &context_attr, &context), 0);
    passive = listener_open(&node, 0, true);
    attr.tx_cq = attr.rx_cq = node.cq;
    attr.rx_context = context;
    for (int i = 0; i < 2; i++) {
        clients[i] = endpoint_open(&node, 0);
        assert_int_equal(ask(clients[i], passive, ""), 0);
        attr.request = expect_event(&node, OFP_EVENT_CONNREQ, 0, "").handle;
        assert_int_equal(ofp_endpoint_open(node.domain, &attr, &servers[i], text, sizeof(text)), 0);
        assert_int_equal(ofp_accept(servers[i], NULL, 0), 0);
        expect_event(&node, OFP_EVENT_CONNECTED, 0, "");
        /* A number that names nobody: the peer is ignored here too. */
        assert_int_equal(post(context, OFP_TRECV, 5, room[i], 8, 10), 1);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(post(clients[i], OFP_TSEND, 0, data, 8, 20), 1);
        expect_completion(&node, 20, 0);
        while (ofp_cq_read(node.cq, &row, 1) != 1)
            ;
        assert_int_equal(row.context, 10);
        assert_int_equal(row.endpoint, ofp_endpoint_id(servers[i]));
    }
    /* The loss of one connection leaves receives of the others alone. */
    assert_int_equal(post(context, OFP_TRECV, OFP_PEER_ANY, room[0], 8, 30), 1);
    assert_int_equal(ofp_endpoint_close(clients[0], 0), 0);
    ofp_domain_progress(node.domain);
    assert_int_equal(ofp_cq_read(node.cq, &row, 1), 0);
    assert_int_equal(status(servers[0], ""), -ESHUTDOWN);
    assert_int_equal(post(clients[1], OFP_TSEND, 0, data, 8, 31), 1);
    expect_completion(&node, 31, 0);
    expect_completion(&node, 30, 0);
    assert_int_equal(ofp_endpoint_close(clients[1], 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ofp_endpoint_close(servers[i], 0), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    assert_int_equal(ofp_receive_context_close(context), 0);
    node_close(&node);
}

/* A server and clients in threads of their own, each in its own domain. */
struct client {
    struct node node;
    struct ofp_passive *passive;
    pthread_t thread;
};

static void *connect_send_and_leave(void *argument)
{
    struct client *client = argument;
    struct node *node = &client->node;
    struct ofp_endpoint *endpoint = endpoint_open(node, 0);
    ofp_request_t request;
    char data[8] = "threads";

    assert_int_equal(ask(endpoint, client->passive, "let me in"), 0);
    request = ofp_connection_request(endpoint);
    assert_int_equal(request_take(request, 10 * SECOND).error, 0);
    expect_event(node, OFP_EVENT_CONNECTED, 0, "");
    assert_int_equal(post(endpoint, OFP_TSEND, 0, data, 8, 1), 1);
    assert_int_equal(ofp_shutdown(endpoint), 0);
    while (status(endpoint, "") == 0)
        ofp_domain_progress(node->domain);
    expect_completion(node, 1, 0);
    assert_int_equal(ofp_endpoint_close(endpoint, 0), 0);
    return NULL;
}

static void test_threads(void **state)
{
    enum { CLIENTS = 4, ROUNDS = 5 };
    struct node server;
    struct client clients[CLIENTS];
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX], room[8];
    bool expired;

    (void)state;
    node_open(&server, OFP_PROGRESS_AUTO);
    for (int round = 0; round < ROUNDS; round++) {
        struct ofp_endpoint *accepted[CLIENTS];
        struct ofp_passive *passive;
        int count = 0, ended = 0;

        for (int i = 0; i < CLIENTS; i++)
            node_open(&clients[i].node, OFP_PROGRESS_AUTO);
        passive = listener_open(&server, 0, true);
        for (int i = 0; i < CLIENTS; i++) {
            clients[i].passive = passive;
            assert_int_equal(pthread_create(&clients[i].thread, NULL, connect_send_and_leave, &clients[i]), 0);
        }
        while (ended < CLIENTS) {
            assert_int_equal(ofp_eq_wait(server.eq, &event, data, 10 * SECOND, &expired), 1);
            if (event.kind == OFP_EVENT_CONNREQ) {
                accepted[count] = endpoint_open(&server, event.handle);
                assert_int_equal(post(accepted[count], OFP_TRECV, 0, room, 8, 1), 1);
                assert_int_equal(ofp_accept(accepted[count++], NULL, 0), 0);
            } else if (event.kind == OFP_EVENT_SHUTDOWN) {
                ended++;
            }
        }
        for (int i = 0; i < CLIENTS; i++) {
            assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
            node_close(&clients[i].node);
            expect_completion(&server, 1, 0);
            assert_int_equal(ofp_endpoint_close(accepted[i], 0), 0);
        }
        assert_int_equal(ofp_passive_close(passive), 0);
    }
    node_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_KINDS(test_orderly_end),
        BOTH_KINDS(test_end_that_fails),
        BOTH_KINDS(test_what_happened_first_comes_first),
        BOTH_KINDS(test_loss),
        BOTH_KINDS(test_threads),
        cmocka_unit_test_setup(test_shared_receive_context, with_core_matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
