/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many peers that nobody inserted come by a packet channel, send one message and leave: memory stays constant. By hand
 * OFIPY_TEST_RDM_PEERS=1000000 test_rdm_uninserted.
 */
#include "rdm_fixture.h"

#include "peer/uninserted.h"
#include "rdm/transfer/hello.h"
#include "resident_memory.h"

#define FEW 20000

struct server {
    struct side side;
    bool proves; /* the channel says of each caller that it has given its proof */
};

static void progress_server(struct server *server)
{
    for (int i = 0; i < 4; i++)
        ofp_domain_progress(server->side.domain);
}

static enum rdmfake_event_kind read_event(struct rdmfake_port *port)
{
    struct rdmfake_event *event = rdmfake_port_take(port);
    enum rdmfake_event_kind kind;

    assert_non_null(event);
    kind = event->kind;
    rdmfake_event_free(event);
    return kind;
}

static struct rdmfake_line *connect_caller(struct server *server, struct rdmfake_port *port, uint32_t number)
{
    struct ofpi_rdm_hello hello = {.version = OFPI_RDM_VERSION,
                                   .oldest = OFPI_RDM_OLDEST,
                                   .packet_size = 4096,
                                   .credits = {4, 4},
                                   .incarnation = UINT64_C(1000000007) + number};
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct rdmfake_address there;
    struct rdmfake_line *line;
    size_t size = sizeof(there);
    int error;

    memcpy(hello.identity, &number, sizeof(number));
    hello.identity[15] = 1;
    ofpi_rdm_hello_encode(&hello, bytes);
    assert_int_equal(ofp_endpoint_address(server->side.endpoint, &there, &size), 0);
    line = rdmfake_line_ask(port, &there, bytes, sizeof(bytes), &error);
    assert_non_null(line);
    progress_server(server);
    assert_int_equal(read_event(port), RDMFAKE_ACCEPT);
    rdm_path_of(&server->side)->base.proven = server->proves;
    return line;
}

static void receive_letter(struct server *server, struct rdmfake_line *line)
{
    const struct ofpi_rdm_packet packet = {.kind = OFPI_RDM_EAGER, .channel = OFP_CHANNEL_TAGGED, .tag = 1};
    uint8_t bytes[128], in = 0;
    uint32_t length = ofpi_rdm_encode(&packet, bytes);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, 1, 5);
    struct ofp_completion row;

    bytes[length] = 42;
    assert_int_equal(rdmfake_line_put(line, 1, RDMFAKE_PACKET, false, bytes, length + 1), 0);
    assert_int_equal(ofp_post(server->side.endpoint, &receive, 1), 1);
    progress_server(server);
    assert_int_equal(ofp_cq_read(server->side.cq, &row, 1), 1);
    assert_int_equal(row.error, 0);
    assert_int_equal(in, 42);
}

static void come_and_go(uint32_t number, void *data)
{
    struct server *server = data;
    struct rdmfake_address address = {.magic = 0x666d6472u, .process = (uint32_t)getpid()};
    struct rdmfake_event *event;
    struct rdmfake_port *port;
    struct rdmfake_line *line;

    snprintf(address.service, sizeof(address.service), "caller%u", number);
    assert_int_equal(rdmfake_port_open(&address, false, -1, NULL, &port), 0);
    for (int i = 0; i < 16; i++)
        rdmfake_port_posted(port);
    line = connect_caller(server, port, number);
    receive_letter(server, line);
    rdmfake_line_close(line, 0);
    progress_server(server);
    while ((event = rdmfake_port_take(port)))
        rdmfake_event_free(event);
    rdmfake_port_close(port);
    progress_server(server);
}

static void let_them_come(bool proves)
{
    uint32_t count = resident_count("OFIPY_TEST_RDM_PEERS", RESIDENT_SANITIZED ? 3000 : FEW);
    struct server server = {.proves = proves};
    struct ofp_endpoint_statistics statistics;

    rdm_side_open(&server.side, RDMFAKE_GETS, 0);
    resident_check(count, come_and_go, &server);
    assert_int_equal(ofp_endpoint_statistics(server.side.endpoint, &statistics), 0);
    assert_int_equal(statistics.peers_lost, count);
    assert_int_equal(statistics.peers_up, 0);
    assert_true(ofp_av_count(server.side.av) >= OFPI_UNINSERTED_LIMIT);
    assert_true(ofp_av_count(server.side.av) <= OFPI_UNINSERTED_LIMIT + 64);
    rdm_check_idle(&server.side);
    forget_warnings();
    side_close(&server.side);
}

static void test_callers_without_proof(void **state)
{
    (void)state;
    let_them_come(false);
}

static void test_callers_that_prove(void **state)
{
    (void)state;
    let_them_come(true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callers_without_proof),
        cmocka_unit_test(test_callers_that_prove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
