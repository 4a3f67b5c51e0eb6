/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected endpoints over the fake provider, for tests of the core through its public calls. */
#ifndef CONNECTION_FIXTURE_H
#define CONNECTION_FIXTURE_H

#include "core_fixture.h"

#include "base/clock.h"
#include "ofipy/connect.h"

#define SECOND 1000000000ll

/* A domain for connected endpoints, and what they share. */
struct node {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_eq *eq;
    struct node *other; /* makes progress while this one waits, since one thread may drive both */
};

static bool offloads; /* which kind of matching the running test is for */

static inline struct ofp_info info_of_type(uint32_t ep_type)
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

static inline void node_open(struct node *node, uint32_t progress)
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

static inline void nodes_open(struct node *server, struct node *client)
{
    node_open(server, OFP_PROGRESS_MANUAL);
    node_open(client, OFP_PROGRESS_MANUAL);
    server->other = client;
    client->other = server;
}

static inline void node_close(struct node *node)
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

static inline struct ofp_passive *listener_open(struct node *node, uint32_t backlog, bool listens)
{
    struct ofp_passive_attr attr = {.eq = node->eq, .backlog = backlog};
    struct ofp_passive *passive;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_passive_open(node->domain, &attr, &passive, text, sizeof(text)), 0);
    if (listens)
        assert_int_equal(ofp_passive_listen(passive), 0);
    return passive;
}

static inline struct ofp_endpoint *endpoint_open(struct node *node, uint64_t request)
{
    struct ofp_endpoint_attr attr = {.tx_cq = node->cq, .rx_cq = node->cq, .eq = node->eq, .request = request};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_endpoint_open(node->domain, &attr, &endpoint, text, sizeof(text)), 0);
    return endpoint;
}

static inline int ask(struct ofp_endpoint *endpoint, struct ofp_passive *passive, const char *data)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    assert_int_equal(ofp_passive_address(passive, address, &length), 0);
    return ofp_connect(endpoint, address, length, data, strlen(data));
}

/* The next event, of this kind and error; its data as a string. */
static inline struct ofp_event expect_event(struct node *node, uint32_t kind, int error, const char *said)
{
    struct ofp_event event = {0};
    char data[OFP_EVENT_DATA_MAX];
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    while (ofp_eq_read(node->eq, &event, data) != 1) {
        if (node->other)
            ofp_domain_progress(node->other->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.error, error);
    assert_int_equal(event.peer, OFP_PEER_UNKNOWN);
    assert_int_equal(event.data_length, strlen(said));
    assert_memory_equal(data, said, strlen(said));
    return event;
}

static inline void expect_completion(struct node *node, uint64_t context, int error)
{
    struct ofp_completion row = {0};
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    while (ofp_cq_read(node->cq, &row, 1) != 1) {
        if (node->other)
            ofp_domain_progress(node->other->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(row.context, context);
    assert_int_equal(row.error, error);
}

/* Both ends of a connection of which both sides have been told. */
static inline void connect_pair(struct node *server, struct node *client, struct ofp_endpoint **accepted,
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
static inline int64_t post(struct ofp_endpoint *endpoint, uint16_t op, uint32_t peer, const void *buffer,
                           uint64_t length, uint64_t context)
{
    struct ofp_operation operation = tagged(op, peer, 7, buffer, length, context);

    return ofp_post(endpoint, &operation, 1);
}

static inline int status(struct ofp_endpoint *endpoint, const char *said)
{
    char data[OFP_EVENT_DATA_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(data);
    int result = ofp_connection_status(endpoint, data, &length, text, sizeof(text));

    assert_int_equal(length, strlen(said));
    assert_memory_equal(data, said, length);
    return result;
}

static inline int with_core_matching(void **state)
{
    (void)state;
    offloads = false;
    return 0;
}

static inline int with_offloaded_matching(void **state)
{
    (void)state;
    offloads = true;
    return 0;
}

#define BOTH_KINDS(test)                                                                                               \
    cmocka_unit_test_setup(test, with_core_matching), cmocka_unit_test_setup(test, with_offloaded_matching)

#endif
