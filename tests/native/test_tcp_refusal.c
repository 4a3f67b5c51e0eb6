/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that has the key, and whose release speaks no version of this one. Both sides are told after two round trips. Timers never
 * expire here, so what a side is told comes by the messages alone, and at once.
 */
#include "test_tcp_keys.h"

#include "proof/sha256.h"

#define KEY "the key of these tests"
enum { LATER = 200, NONCE = TCP_NONCE_WORDS * 8, RECEIVE = 5, CONNECTOR = 'c', ACCEPTOR = 'a' };

void __wrap_ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer);

void __wrap_ofpi_timer_start(struct ofpi_domain *domain, struct ofp_timer *timer)
{
    (void)domain;
    (void)timer;
}

/* ------------------------------------------------------------------------------------------------------- a later release */

static void later_says(int fd, enum tcp_control_type type, const void *data, size_t length)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control = {.type = (uint8_t)type,
                                  .private_size = (uint16_t)length,
                                  .magic = TCP_EXTENSION_MAGIC | LATER,
                                  .capabilities = TCP_CAPABILITY_AUTHENTICATION};

    tcp_control_encode(&control, bytes);
    if (length)
        memcpy(bytes + TCP_CONTROL_SIZE, data, length);
    raw_write(fd, bytes, TCP_CONTROL_SIZE + length);
}

static void later_asks(int fd)
{
    uint8_t bytes[TCP_RDM_SIZE];

    tcp_rdm_encode(&(struct tcp_rdm){.version = 1, .port = RAW_PORT, .pid = RAW_PID}, bytes);
    later_says(fd, TCP_CONNREQ, bytes, sizeof(bytes));
}

/* The next message of the endpoint, which says its versions. Returns the length of its private data. */
static size_t later_hears(struct side *side, int fd, enum tcp_control_type type, uint8_t data[TCP_PRIVATE_MAX])
{
    uint8_t bytes[TCP_CONTROL_SIZE];
    struct tcp_control control;

    assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
    assert_int_equal(tcp_control_decode(bytes, &control), 0);
    assert_int_equal(control.type, type);
    assert_int_equal(tcp_magic_get_version(control.magic), TCP_EXTENSION_VERSION);
    assert_true(raw_read(side, fd, data, control.private_size));
    return control.private_size;
}

static uint8_t *put_address(uint8_t *to, const union tcp_address *address)
{
    *to++ = 4;
    memcpy(to, &address->v4.sin_addr, 4);
    memcpy(to + 4, &address->v4.sin_port, 2);
    return to + 6;
}

static union tcp_address raw_address(uint16_t port)
{
    union tcp_address address = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};

    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

struct ends {
    union tcp_address connector, acceptor;
    uint8_t nonces[2][NONCE];
    uint8_t versions[2]; /* of the connector, and of the acceptor: each speaks one */
};

/* What the README says of it. */
static void compute_proof(char role, const struct ends *ends, uint8_t proof[TCP_PROOF_SIZE])
{
    uint8_t bytes[256], *end = bytes;

    memcpy(end, "ofipy tcp versions", 18);
    end += 18;
    *end++ = (uint8_t)role;
    memcpy(end, ends->nonces, sizeof(ends->nonces));
    end = put_address(put_address(end + sizeof(ends->nonces), &ends->connector), &ends->acceptor);
    for (int i = 0; i < 4; i++)
        *end++ = ends->versions[i / 2];
    ofpi_hmac_compute((const uint8_t *)KEY, strlen(KEY), bytes, (size_t)(end - bytes), proof);
}

static void check_told(struct side *side)
{
    struct ofp_completion row;
    char text[OFP_TEXT_MAX];

    do
        ofp_domain_progress(side->domain);
    while (ofp_cq_read(side->cq, &row, 1) != 1);
    assert_int_equal(row.context, RECEIVE);
    assert_int_equal(row.error, EPROTONOSUPPORT);
    ofp_reason(row.provider_error, text, sizeof(text));
    assert_string_equal(text,
                        "the peer speaks version 200 of the tcp extension, and this side version 1; update ofipy on "
                        "this side");
}

static void check_not_told(struct side *side)
{
    struct ofp_completion row;

    for (int i = 0; i < 50; i++)
        ofp_domain_progress(side->domain);
    assert_int_equal(ofp_cq_read(side->cq, &row, 1), 0);
}

/* -------------------------------------------------------------------------------------------------------- it calls us */

enum call { PROVEN, REFLECTED, OTHER_VERSIONS, OTHER_PORT, OF_OTHER_NONCE, NO_PROOF, CALLS };

static void call_side(struct side *side, enum call call)
{
    uint8_t data[TCP_PRIVATE_MAX], answer[NONCE + TCP_PROOF_SIZE], proof[TCP_PROOF_SIZE];
    struct ends ends = {.connector = raw_address(call == OTHER_PORT ? RAW_PORT + 1 : RAW_PORT),
                        .acceptor = address_of(side),
                        .versions = {LATER, TCP_EXTENSION_VERSION}};
    int fd = raw_connect(side);

    later_asks(fd);
    assert_int_equal(later_hears(side, fd, TCP_NACK, data), NONCE);
    check_not_told(side);
    memset(ends.nonces[0], call, NONCE);
    memcpy(ends.nonces[1], data, NONCE);
    if (call == OF_OTHER_NONCE)
        ends.nonces[1][3] ^= 1;
    if (call == OTHER_VERSIONS)
        ends.versions[0]--;
    memcpy(answer, ends.nonces[0], NONCE);
    compute_proof(call == REFLECTED ? ACCEPTOR : CONNECTOR, &ends, answer + NONCE);
    later_says(fd, TCP_CONNREQ, answer, call == NO_PROOF ? NONCE : sizeof(answer));
    if (call == PROVEN) {
        assert_int_equal(later_hears(side, fd, TCP_NACK, data), TCP_PROOF_SIZE);
        compute_proof(ACCEPTOR, &ends, proof);
        assert_memory_equal(data, proof, TCP_PROOF_SIZE);
    } else if (call != NO_PROOF) {
        /* Nothing else says that the key is another one. */
        assert_int_equal(later_hears(side, fd, TCP_NACK, data), 1);
    }
    raw_is_dropped(side, fd);
}

static void test_a_call_of_a_later_release(void **state)
{
    struct side side;
    uint8_t room;

    (void)state;
    open_with(&side, KEY);
    post(&side, tagged(OFP_TRECV, raw_peer(&side), 1, &room, 1, RECEIVE));
    for (int call = CALLS - 1; call > PROVEN; call--) {
        call_side(&side, (enum call)call);
        check_not_told(&side);
    }
    call_side(&side, PROVEN);
    check_told(&side);
    side_close(&side);
}

/* It has no key: nothing is to be believed, and it is told what this side speaks. */
static void test_a_call_without_a_key(void **state)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE] = {0}, data[TCP_PRIVATE_MAX];
    struct tcp_control control = {
        .type = TCP_CONNREQ, .private_size = TCP_RDM_SIZE, .magic = TCP_EXTENSION_MAGIC | LATER};
    struct side side;
    uint8_t room;
    int fd;

    (void)state;
    open_with(&side, KEY);
    post(&side, tagged(OFP_TRECV, raw_peer(&side), 1, &room, 1, RECEIVE));
    fd = raw_connect(&side);
    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(&(struct tcp_rdm){.version = 1, .port = RAW_PORT, .pid = RAW_PID}, bytes + TCP_CONTROL_SIZE);
    raw_write(fd, bytes, sizeof(bytes));
    assert_int_equal(later_hears(&side, fd, TCP_NACK, data), 0);
    raw_is_dropped(&side, fd);
    check_not_told(&side);
    side_close(&side);
}

/* --------------------------------------------------------------------------------------------------------- we call it */

/* How it answers our proof. */
enum answer { PROVES, REFLECTS, REFUSES, ANSWERS };

static void answer_side(struct side *side, int listener, enum answer answer)
{
    uint8_t data[TCP_PRIVATE_MAX], proof[TCP_PROOF_SIZE], refused = TCP_REFUSED_FOR_KEY;
    struct ends ends = {.connector = address_of(side), .versions = {TCP_EXTENSION_VERSION, LATER}};
    socklen_t length = sizeof(ends.acceptor);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    assert_int_equal(getsockname(listener, &ends.acceptor.any, &length), 0);
    assert_int_equal(later_hears(side, fd, TCP_CONNREQ, data), TCP_RDM_SIZE);
    memset(ends.nonces[1], answer + 1, NONCE);
    later_says(fd, TCP_NACK, ends.nonces[1], NONCE);
    assert_int_equal(later_hears(side, fd, TCP_CONNREQ, data), NONCE + TCP_PROOF_SIZE);
    memcpy(ends.nonces[0], data, NONCE);
    compute_proof(CONNECTOR, &ends, proof);
    assert_memory_equal(data + NONCE, proof, TCP_PROOF_SIZE);
    compute_proof(answer == REFLECTS ? CONNECTOR : ACCEPTOR, &ends, proof);
    later_says(fd, TCP_NACK, answer == REFUSES ? &refused : proof, answer == REFUSES ? 1 : sizeof(proof));
    raw_is_dropped(side, fd);
}

static void test_an_answer_of_a_later_release(void **state)
{
    (void)state;
    for (int answer = 0; answer < ANSWERS; answer++) {
        union tcp_address address = raw_address(0);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t length = sizeof(address.v4);
        struct ofp_completion row;
        struct side side;
        uint8_t byte = 1;
        uint32_t peer;

        assert_int_equal(bind(listener, &address.any, length), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, &address.any, &length), 0);
        open_with(&side, KEY);
        assert_int_equal(ofp_av_insert(side.av, &address, sizeof(address.v4), &peer), 0);
        post(&side, tagged(OFP_TSEND, peer, 1, &byte, 1, RECEIVE));
        answer_side(&side, listener, (enum answer)answer);
        if (answer == PROVES) {
            check_told(&side);
        } else {
            assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
            assert_int_equal(row.error, EACCES);
        }
        close(listener);
        side_close(&side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_of_a_later_release),
        cmocka_unit_test(test_a_call_without_a_key),
        cmocka_unit_test(test_an_answer_of_a_later_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
