/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of type MSG through the public calls: connect, accept, reject, shutdown, loss. */
#include "core_fixture.h"

#define SECOND 1000000000ll

/* A domain for connected endpoints, and what they share. */
struct node {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_eq *eq;
    struct node *other; /* makes progress while this one waits, since one thread may drive both */
};

static bool offloads; /* which kind of matching the running test is for */

static struct ofp_info info_of_type(uint32_t ep_type)
{
    struct ofp_info infos[8];
    char text[OFP_TEXT_MAX];
    int count = ofp_provider_getinfo(fake_provider(), infos, 8, text, sizeof(text));

    for (int i = 0; i < count; i++)
        if (infos[i].ep_types == ep_type && infos[i].offloads_matching == offloads)
            return infos[i];
    fail_msg("the fake provider has no such endpoint");
    return infos[0];
}

static void node_open(struct node *node, uint32_t progress)
{
    struct ofp_info info = info_of_type(OFP_EP_MSG);
    struct ofp_domain_attr domain_attr = {.progress = progress};
    struct ofp_cq_attr cq_attr = {0};
    struct ofp_eq_attr eq_attr = {0};
    char text[OFP_TEXT_MAX];

    node->other = NULL;
    assert_int_equal(ofp_domain_open(fake_provider(), &info, &domain_attr, &node->domain, text, sizeof(text)), 0);
    assert_int_equal(ofp_cq_open(node->domain, &cq_attr, &node->cq), 0);
    assert_int_equal(ofp_eq_open(node->domain, &eq_attr, &node->eq), 0);
}

static void nodes_open(struct node *server, struct node *client)
{
    node_open(server, OFP_PROGRESS_MANUAL);
    node_open(client, OFP_PROGRESS_MANUAL);
    server->other = client;
    client->other = server;
}

static void node_close(struct node *node)
{
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX];

    assert_int_equal(ofp_eq_read(node->eq, &event, data), 0);
    assert_int_equal(ofp_eq_close(node->eq), 0);
    assert_int_equal(ofp_cq_close(node->cq), 0);
    assert_int_equal(ofp_domain_close(node->domain), 0);
    if (node->other)
        node->other->other = NULL;
}

static struct ofp_passive *listener_open(struct node *node, uint32_t backlog, bool listens)
{
    struct ofp_passive_attr attr = {.eq = node->eq, .backlog = backlog};
    struct ofp_passive *passive;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_passive_open(node->domain, &attr, &passive, text, sizeof(text)), 0);
    if (listens)
        assert_int_equal(ofp_passive_listen(passive), 0);
    return passive;
}

static struct ofp_endpoint *endpoint_open(struct node *node, uint64_t request)
{
    struct ofp_endpoint_attr attr = {.tx_cq = node->cq, .rx_cq = node->cq, .eq = node->eq, .request = request};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_endpoint_open(node->domain, &attr, &endpoint, text, sizeof(text)), 0);
    return endpoint;
}

static int ask(struct ofp_endpoint *endpoint, struct ofp_passive *passive, const char *data)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    assert_int_equal(ofp_passive_address(passive, address, &length), 0);
    return ofp_connect(endpoint, address, length, data, strlen(data));
}

/* The next event, of this kind and error; its data as a string. */
static struct ofp_event expect_event(struct node *node, uint32_t kind, int error, const char *said)
{
    struct ofp_event event = {0};
    char data[OFP_EVENT_DATA_MAX];
    uint64_t deadline = ofpi_now() + 5 * SECOND;

    while (ofp_eq_read(node->eq, &event, data) != 1) {
        if (node->other)
            ofp_domain_progress(node->other->domain);
        assert_true(ofpi_now() < deadline);
    }
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.error, error);
    assert_int_equal(event.peer, OFP_PEER_UNKNOWN);
    assert_int_equal(event.data_length, strlen(said));
    assert_memory_equal(data, said, strlen(said));
    return event;
}

static void expect_completion(struct node *node, uint64_t context, int error)
{
    struct ofp_completion row = {0};
    uint64_t deadline = ofpi_now() + 5 * SECOND;

    while (ofp_cq_read(node->cq, &row, 1) != 1) {
        if (node->other)
            ofp_domain_progress(node->other->domain);
        assert_true(ofpi_now() < deadline);
    }
    assert_int_equal(row.context, context);
    assert_int_equal(row.error, error);
}

/* Both ends of a connection of which both sides have been told. */
static void connect_pair(struct node *server, struct node *client, struct ofp_endpoint **accepted,
                         struct ofp_endpoint **connected)
{
    struct ofp_passive *passive = listener_open(server, 0, true);
    struct ofp_event event;

    *connected = endpoint_open(client, 0);
    assert_int_equal(ask(*connected, passive, "hello"), 0);
    event = expect_event(server, OFP_EVENT_CONNREQ, 0, "hello");
    assert_int_equal(event.endpoint, ofp_passive_id(passive));
    *accepted = endpoint_open(server, event.handle);
    assert_int_equal(ofp_accept(*accepted, "welcome", 7), 0);
    event = expect_event(server, OFP_EVENT_CONNECTED, 0, "");
    assert_int_equal(event.endpoint, ofp_endpoint_id(*accepted));
    event = expect_event(client, OFP_EVENT_CONNECTED, 0, "welcome");
    assert_int_equal(event.endpoint, ofp_endpoint_id(*connected));
    assert_int_equal(ofp_passive_close(passive), 0);
}

/* Any number as the peer: a connection has but one. */
static int64_t post(struct ofp_endpoint *endpoint, uint16_t op, uint32_t peer, const void *buffer, uint64_t length,
                    uint64_t context)
{
    struct ofp_operation operation = tagged(op, peer, 7, buffer, length, context);

    return ofp_post(endpoint, &operation, 1);
}

static int status(struct ofp_endpoint *endpoint, const char *said)
{
    char data[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(data);
    int result = ofp_connection_status(endpoint, data, &length, text, sizeof(text));

    assert_int_equal(length, strlen(said));
    assert_memory_equal(data, said, length);
    return result;
}

static void test_connect_and_exchange(void **state)
{
    struct node server, client;
    struct ofp_endpoint *here, *there;
    char first[8] = "request", second[8] = "answer", room[2][8];
    char a[OFP_ADDRESS_MAX], b[OFP_ADDRESS_MAX];
    size_t a_length = sizeof(a), b_length = sizeof(b);

    (void)state;
    nodes_open(&server, &client);
    connect_pair(&server, &client, &here, &there);
    assert_int_equal(status(here, ""), 0);
    assert_int_equal(status(there, "welcome"), 0);
    assert_int_equal(ofp_peer_address(here, a, &a_length), 0);
    assert_int_equal(ofp_endpoint_address(there, b, &b_length), 0);
    assert_int_equal(a_length, b_length);
    assert_memory_equal(a, b, a_length);
    assert_int_equal(post(here, OFP_TRECV, 17, room[0], 8, 1), 1);
    assert_int_equal(post(there, OFP_TRECV, OFP_PEER_ANY, room[1], 8, 2), 1);
    assert_int_equal(post(there, OFP_TSEND, 0, first, 8, 3), 1);
    expect_completion(&client, 3, 0);
    expect_completion(&server, 1, 0);
    assert_int_equal(post(here, OFP_TSEND, OFP_PEER_UNKNOWN, second, 8, 4), 1);
    expect_completion(&server, 4, 0);
    expect_completion(&client, 2, 0);
    assert_string_equal(room[0], "request");
    assert_string_equal(room[1], "answer");
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(status(here, ""), -ESHUTDOWN);
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    node_close(&client);
    node_close(&server);
}

static void test_rejected(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *there;
    struct ofp_event event;
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, ""), 0);
    assert_int_equal(status(there, ""), -EINPROGRESS);
    /* What is posted meanwhile shares the fate of the connection. */
    assert_int_equal(post(there, OFP_TRECV, 0, address, 8, 1), 1);
    assert_int_equal(post(there, OFP_TSEND, 0, address, 8, 2), 1);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    assert_int_equal(ofp_passive_requester(passive, event.handle, address, &length), 0);
    assert_int_equal(ofp_passive_requester(passive, event.handle + 1, address, &length), -ENOENT);
    assert_int_equal(ofp_passive_reject(passive, event.handle, "full", 4), 0);
    assert_int_equal(ofp_passive_reject(passive, event.handle, "full", 4), -ENOENT);
    event = expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "full");
    assert_int_equal(event.endpoint, ofp_endpoint_id(there));
    expect_completion(&client, 2, ECONNREFUSED);
    expect_completion(&client, 1, ECONNREFUSED);
    assert_int_equal(status(there, "full"), -ECONNREFUSED);
    assert_int_equal(ask(there, passive, ""), -EISCONN);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&client);
    node_close(&server);
}

/* Nobody listens, nobody listens yet, the backlog is full, nobody answers: each is a refusal, and nobody waits for ever. */
static void test_refused_without_an_answer(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *early, *first, *second, *third, *opened;
    struct ofp_event event;

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 2, false);
    early = endpoint_open(&client, 0);
    assert_int_equal(ask(early, passive, ""), 0);
    expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "");
    assert_int_equal(ofp_passive_listen(passive), 0);
    assert_int_equal(ofp_passive_listen(passive), 0);

    first = endpoint_open(&client, 0);
    second = endpoint_open(&client, 0);
    third = endpoint_open(&client, 0);
    assert_int_equal(ask(first, passive, "1"), 0);
    assert_int_equal(ask(second, passive, "2"), 0);
    assert_int_equal(ask(third, passive, "3"), 0);
    event = expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "");
    assert_int_equal(event.endpoint, ofp_endpoint_id(third));

    /* The endpoint that was opened from a request answers for it from then on. */
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "1");
    opened = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_passive_reject(passive, event.handle, NULL, 0), -ENOENT);
    assert_int_equal(ofp_passive_close(passive), 0);
    event = expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "");
    assert_int_equal(event.endpoint, ofp_endpoint_id(second));
    assert_int_equal(status(first, ""), -EINPROGRESS);
    assert_int_equal(ofp_endpoint_close(opened, 0), 0);
    event = expect_event(&client, OFP_EVENT_CONNECTED, ECONNREFUSED, "");
    assert_int_equal(event.endpoint, ofp_endpoint_id(first));

    expect_event(&server, OFP_EVENT_CONNREQ, 0, "2");
    assert_int_equal(ofp_endpoint_close(early, 0), 0);
    assert_int_equal(ofp_endpoint_close(first, 0), 0);
    assert_int_equal(ofp_endpoint_close(second, 0), 0);
    assert_int_equal(ofp_endpoint_close(third, 0), 0);
    node_close(&client);
    node_close(&server);
}

static void test_given_up_before_the_answer(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *here, *there;
    struct ofp_event event;

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, ""), 0);
    assert_int_equal(ofp_shutdown(there), 0);
    assert_int_equal(status(there, ""), -ECANCELED);
    assert_int_equal(ofp_shutdown(there), -ENOTCONN);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    here = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_accept(here, NULL, 0), 0);
    expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);

    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, ""), 0);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    here = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_accept(here, NULL, 0), 0);
    expect_event(&server, OFP_EVENT_CONNECTED, ECONNRESET, "");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&client);
    node_close(&server);
}

static void test_operations_before_and_during_the_handshake(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *here, *there;
    struct ofp_event event;
    char room[2][8], data[8] = "early";

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    there = endpoint_open(&client, 0);
    assert_int_equal(post(there, OFP_TSEND, 0, data, 8, 1), -ENOTCONN);
    assert_int_equal(ofp_shutdown(there), -ENOTCONN);
    assert_int_equal(post(there, OFP_TRECV, 0, room[0], 8, 2), 1);
    assert_int_equal(ask(there, passive, ""), 0);
    assert_int_equal(post(there, OFP_TSEND, 0, data, 8, 3), 1);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    here = endpoint_open(&server, event.handle);
    assert_int_equal(post(here, OFP_TRECV, 0, room[1], 8, 4), 1);
    assert_int_equal(ofp_accept(here, NULL, 0), 0);
    assert_int_equal(post(here, OFP_TSEND, 0, data, 8, 5), 1);
    expect_completion(&server, 5, 0);
    expect_completion(&server, 4, 0);
    expect_completion(&client, 2, 0);
    expect_completion(&client, 3, 0);
    assert_string_equal(room[0], "early");
    assert_string_equal(room[1], "early");
    expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
    expect_event(&client, OFP_EVENT_CONNECTED, 0, "");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    expect_event(&client, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&client);
    node_close(&server);
}

/* What was posted still leaves, from the backlog too; nothing comes after. */
static void test_orderly_end(void **state)
{
    enum { MESSAGES = 400, LENGTH = 5000 }; /* beyond the inbox and the eager size */
    struct node server, client;
    struct ofp_endpoint *here, *there;
    char *data = calloc(1, LENGTH), *room = calloc(1, LENGTH);

    (void)state;
    nodes_open(&server, &client);
    connect_pair(&server, &client, &here, &there);
    assert_int_equal(post(there, OFP_TRECV, 0, room, LENGTH, 1), 1);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(post(there, OFP_TSEND, 0, data, LENGTH, 2), 1);
    assert_int_equal(ofp_shutdown(there), 0);
    assert_int_equal(post(there, OFP_TSEND, 0, data, LENGTH, 2), -ENOTCONN);
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(post(here, OFP_TRECV, 0, room, LENGTH, 3), 1);
        expect_completion(&server, 3, 0);
    }
    for (int i = 0; i < MESSAGES; i++)
        expect_completion(&client, 2, 0);
    expect_completion(&client, 1, ECANCELED);
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

static void test_waiting_for_the_outcome(void **state)
{
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *here, *there;
    struct ofp_event event;
    ofp_request_t requests[3];

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    there = endpoint_open(&client, 0);
    assert_int_equal(ofp_connection_request(there), -ENOTCONN);
    assert_int_equal(ask(there, passive, ""), 0);
    for (int i = 0; i < 3; i++) {
        requests[i] = ofp_connection_request(there);
        assert_true(requests[i] > 0);
        assert_int_equal(ofp_request_test(requests[i]), 0);
    }
    /* Nobody waits for one of them any more. */
    ofp_request_release(requests[2]);
    assert_int_equal(ofp_request_cancel(requests[0]), -ENOENT);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    here = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_accept(here, "yes", 3), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ofp_request_wait(requests[i], SECOND), 1);
        assert_int_equal(ofp_request_completion(requests[i])->length, 3);
        ofp_request_release(requests[i]);
    }
    requests[0] = ofp_connection_request(here);
    assert_int_equal(ofp_request_take(requests[0], SECOND).error, 0);
    expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
    expect_event(&client, OFP_EVENT_CONNECTED, 0, "yes");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    expect_event(&client, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(there, 0), 0);

    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, ""), 0);
    requests[0] = ofp_connection_request(there);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    assert_int_equal(ofp_request_take(requests[0], SECOND).error, ECANCELED);
    expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&client);
    node_close(&server);
}

static void test_wrong_calls(void **state)
{
    struct node node;
    struct side rdm;
    struct ofp_passive *passive;
    struct ofp_endpoint *endpoint;
    struct ofp_passive_attr passive_attr = {0};
    struct ofp_endpoint_attr attr = {0};
    struct ofp_info info = info_of_type(OFP_EP_MSG);
    char text[OFP_TEXT_MAX], address[OFP_ADDRESS_MAX] = "";
    size_t length = sizeof(address);
    struct ofp_av_attr av_attr = {0};

    (void)state;
    node_open(&node, OFP_PROGRESS_MANUAL);
    side_open(&rdm, offloads, OFP_PROGRESS_MANUAL, 64);
    assert_int_equal(ofp_passive_open(rdm.domain, &passive_attr, &passive, text, sizeof(text)), -EOPNOTSUPP);
    assert_int_equal(ofp_passive_open(node.domain, &passive_attr, &passive, text, sizeof(text)), -EINVAL);
    assert_int_equal(ofp_accept(rdm.endpoint, NULL, 0), -EOPNOTSUPP);
    assert_int_equal(ofp_shutdown(rdm.endpoint), -EOPNOTSUPP);
    assert_int_equal(ofp_connection_request(rdm.endpoint), -EOPNOTSUPP);
    attr.tx_cq = attr.rx_cq = rdm.cq;
    assert_int_equal(ofp_endpoint_open(rdm.domain, &attr, &endpoint, text, sizeof(text)), -EINVAL);
    attr.av = rdm.av;
    attr.request = 1;
    assert_int_equal(ofp_endpoint_open(rdm.domain, &attr, &endpoint, text, sizeof(text)), -EOPNOTSUPP);
    attr.tx_cq = attr.rx_cq = node.cq;
    attr.av = NULL;
    assert_int_equal(ofp_endpoint_open(node.domain, &attr, &endpoint, text, sizeof(text)), -ENOENT);
    attr.request = 0;
    assert_int_equal(ofp_av_open(node.domain, &av_attr, &attr.av), 0);
    assert_int_equal(ofp_endpoint_open(node.domain, &attr, &endpoint, text, sizeof(text)), -EINVAL);
    assert_int_equal(ofp_av_close(attr.av), 0);

    passive = listener_open(&node, 0, true);
    assert_int_equal(ofp_eq_close(node.eq), -EBUSY);
    assert_int_equal(ofp_passive_reject(passive, 1, NULL, 0), -ENOENT);
    assert_int_equal(ofp_passive_reject(passive, 1, NULL, info.max_private_data + 1), -EMSGSIZE);
    endpoint = endpoint_open(&node, 0);
    assert_int_equal(ofp_connect(endpoint, address, 3, NULL, 0), -EINVAL);
    assert_int_equal(ofp_passive_address(passive, address, &length), 0);
    assert_int_equal(ofp_connect(endpoint, address, length, NULL, info.max_private_data + 1), -EMSGSIZE);
    assert_int_equal(ofp_connect(rdm.endpoint, address, length, NULL, 0), -EOPNOTSUPP);
    assert_int_equal(ofp_accept(endpoint, NULL, info.max_private_data + 1), -EMSGSIZE);
    assert_int_equal(ofp_accept(endpoint, NULL, 0), -EINVAL);
    assert_int_equal(ofp_peer_address(endpoint, address, &length), -ENOTCONN);
    assert_int_equal(status(endpoint, ""), -ENOTCONN);
    assert_int_equal(ask(endpoint, passive, ""), 0);
    assert_int_equal(ask(endpoint, passive, ""), -EISCONN);
    assert_int_equal(ofp_accept(endpoint, NULL, 0), -EISCONN);
    length = 1;
    assert_int_equal(ofp_peer_address(endpoint, address, &length), -OFP_ETOOSMALL);
    expect_event(&node, OFP_EVENT_CONNREQ, 0, "");
    assert_int_equal(ofp_endpoint_close(endpoint, 0), 0);
    assert_int_equal(ofp_domain_close(node.domain), -EBUSY);
    assert_int_equal(ofp_passive_retire(passive), 0);
    assert_int_equal(ofp_passive_listen(passive), -ECANCELED);
    ofp_passive_free(passive);
    side_close(&rdm);
    node_close(&node);
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
    assert_int_equal(ofp_request_take(request, 10 * SECOND).error, 0);
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

static int with_core_matching(void **state)
{
    (void)state;
    offloads = false;
    return 0;
}

static int with_offloaded_matching(void **state)
{
    (void)state;
    offloads = true;
    return 0;
}

#define BOTH_KINDS(test)                                                                                               \
    cmocka_unit_test_setup(test, with_core_matching), cmocka_unit_test_setup(test, with_offloaded_matching)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_KINDS(test_connect_and_exchange),
        BOTH_KINDS(test_rejected),
        BOTH_KINDS(test_refused_without_an_answer),
        BOTH_KINDS(test_given_up_before_the_answer),
        BOTH_KINDS(test_operations_before_and_during_the_handshake),
        BOTH_KINDS(test_orderly_end),
        BOTH_KINDS(test_loss),
        BOTH_KINDS(test_waiting_for_the_outcome),
        BOTH_KINDS(test_wrong_calls),
        BOTH_KINDS(test_threads),
        cmocka_unit_test_setup(test_shared_receive_context, with_core_matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
