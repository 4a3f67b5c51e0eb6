/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of type MSG: listeners, requests and their answers, what a connection that begins takes. */
#include "connection_fixture.h"
#include "request_fixture.h"

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
        assert_int_equal(request_test(requests[i]), 0);
    }
    /* Nobody waits for one of them any more. */
    ofp_request_abandon(requests[2], false);
    assert_int_equal(ofp_request_cancel(requests[0]), -ENOENT);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "");
    here = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_accept(here, "yes", 3), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ofp_request_wait(requests[i], SECOND), 1);
        assert_int_equal(request_take(requests[i], 0).length, 3);
        ofp_request_abandon(requests[i], false);
    }
    requests[0] = ofp_connection_request(here);
    assert_int_equal(request_take(requests[0], SECOND).error, 0);
    expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
    expect_event(&client, OFP_EVENT_CONNECTED, 0, "yes");
    assert_int_equal(ofp_endpoint_close(here, 0), 0);
    expect_event(&client, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(there, 0), 0);

    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, ""), 0);
    requests[0] = ofp_connection_request(there);
    assert_int_equal(ofp_endpoint_close(there, 0), 0);
    assert_int_equal(request_take(requests[0], SECOND).error, ECANCELED);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_KINDS(test_connect_and_exchange),
        BOTH_KINDS(test_rejected),
        BOTH_KINDS(test_refused_without_an_answer),
        BOTH_KINDS(test_given_up_before_the_answer),
        BOTH_KINDS(test_operations_before_and_during_the_handshake),
        BOTH_KINDS(test_waiting_for_the_outcome),
        BOTH_KINDS(test_wrong_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
