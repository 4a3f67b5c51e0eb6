/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many peers that nobody inserted, each at an address of its own of 127.0.0.0/8, connect over TCP, send one message and
 * leave: memory stays constant. By hand OFIPY_TEST_TCP_PEERS=100000 test_tcp_uninserted.
 */
#include "test_tcp_keys.h"

#include "peer/uninserted.h"
#include "proof/proof.h"
#include "resident_memory.h"

#define FEW 4000
#define KEY "the key of these tests"

struct server {
    struct side side;
    uint64_t lost; /* peers that have come and gone */
    bool proves;
};

static union tcp_address address_of_caller(uint32_t number)
{
    union tcp_address address;

    memset(&address, 0, sizeof(address));
    address.v4.sin_family = AF_INET;
    address.v4.sin_addr.s_addr = htonl((127u << 24) + (1u << 16) + number);
    return address;
}

static int connect_from(const union tcp_address *own, const union tcp_address *there)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    assert_int_equal(bind(fd, &own->any, sizeof(own->v4)), 0);
    assert_int_equal(connect(fd, &there->any, sizeof(there->v4)), 0);
    return fd;
}

/* A listening address as proofs have it. */
static void add_address(struct ofpi_transcript *transcript, const union tcp_address *address, uint16_t port)
{
    const uint8_t length = 4, bytes[2] = {(uint8_t)(port >> 8), (uint8_t)port};

    ofpi_transcript_add(transcript, &length, 1);
    ofpi_transcript_add(transcript, &address->v4.sin_addr, 4);
    ofpi_transcript_add(transcript, bytes, 2);
}

/* Prove the key as the side that connected; `theirs`: the endpoint's nonce. */
static void prove_key(int fd, const union tcp_address *own, const union tcp_address *there, const uint8_t *theirs)
{
    static const uint8_t role = 'c', agreed[2] = {TCP_EXTENSION_VERSION, TCP_CAPABILITY_AUTHENTICATION};
    struct tcp_header hello = {.op = TCP_HELLO, .words = {1 << 20, 1, 2, 3, 4}}, proof = {.op = TCP_PROOF};
    struct ofpi_transcript transcript = {0};
    uint8_t nonce[TCP_NONCE_WORDS * 8] = {0}, bytes[OFPI_PROOF_SIZE];

    for (int i = 0; i < TCP_NONCE_WORDS; i++)
        nonce[i * 8] = (uint8_t)(i + 1);
    ofpi_transcript_add(&transcript, &role, 1);
    ofpi_transcript_add(&transcript, nonce, sizeof(nonce));
    ofpi_transcript_add(&transcript, theirs, sizeof(nonce));
    add_address(&transcript, own, RAW_PORT);
    add_address(&transcript, there, ntohs(there->v4.sin_port));
    ofpi_transcript_add(&transcript, agreed, sizeof(agreed));
    ofpi_proof_compute((const uint8_t *)KEY, strlen(KEY), &transcript, bytes);
    for (int i = 0; i < TCP_NONCE_WORDS * 8; i++)
        proof.words[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
    raw_send(fd, hello, NULL, 0);
    raw_send(fd, proof, NULL, 0);
}

static void meet_server(struct server *server, int fd, const union tcp_address *own, const union tcp_address *there)
{
    struct tcp_control control = {.type = TCP_CONNREQ};
    struct tcp_rdm rdm = {.version = 1, .port = RAW_PORT, .pid = RAW_PID};
    uint8_t answer[TCP_CONTROL_SIZE + TCP_RDM_SIZE], hello[TCP_HEADER_BASE + 40], proof[TCP_HEADER_BASE + 32];

    if (server->proves) {
        control.magic = TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION;
        control.capabilities = TCP_CAPABILITY_AUTHENTICATION;
    }
    raw_request(fd, control, &rdm);
    assert_true(raw_read(&server->side, fd, answer, sizeof(answer)));
    assert_int_equal(answer[1], TCP_CONNRESP);
    if (!server->proves)
        return;
    assert_true(raw_read(&server->side, fd, hello, sizeof(hello)));
    prove_key(fd, own, there, hello + TCP_HEADER_BASE + 8);
    assert_true(raw_read(&server->side, fd, proof, sizeof(proof)));
    assert_int_equal(proof[1], TCP_PROOF);
}

static void come_and_go(uint32_t number, void *data)
{
    struct server *server = data;
    union tcp_address own = address_of_caller(number), there = address_of(&server->side);
    struct ofp_endpoint_statistics statistics;
    struct ofp_completion row;
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    uint8_t in = 0;
    int fd = connect_from(&own, &there);

    meet_server(server, fd, &own, &there);
    post(&server->side, tagged(OFP_TRECV, OFP_PEER_ANY, 7, &in, 1, 1));
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 7, .payload = 1}, "x", 1);
    row = next_completion(&server->side, NULL);
    assert_int_equal(row.error, 0);
    assert_int_equal(in, 'x');
    close(fd);
    server->lost++;
    do {
        ofp_domain_progress(server->side.domain);
        assert_int_equal(ofp_endpoint_statistics(server->side.endpoint, &statistics), 0);
        assert_true(ofpi_clock_read() < deadline);
    } while (statistics.peers_lost < server->lost);
}

static void let_them_come(bool proves)
{
    uint32_t count = resident_count("OFIPY_TEST_TCP_PEERS", RESIDENT_SANITIZED ? 1500 : FEW);
    struct server server = {.proves = proves};

    setenv("OFIPY_ENCRYPTION", "off", 1);
    open_with(&server.side, proves ? KEY : NULL);
    unsetenv("OFIPY_ENCRYPTION");
    resident_check(count, come_and_go, &server);
    assert_true(ofp_av_count(server.side.av) >= OFPI_UNINSERTED_LIMIT);
    assert_true(ofp_av_count(server.side.av) <= OFPI_UNINSERTED_LIMIT + 64);
    forget_warnings();
    side_close(&server.side);
}

static void test_callers_without_key(void **state)
{
    (void)state;
    let_them_come(false);
}

static void test_callers_with_key(void **state)
{
    (void)state;
    let_them_come(true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callers_without_key),
        cmocka_unit_test(test_callers_with_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
