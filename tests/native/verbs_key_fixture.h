/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint of verbs with a key, and a peer that has the same keys: the connection manager is played, so a test says
 * what it likes in the peer's name.
 */
#ifndef VERBS_KEY_FIXTURE_H
#define VERBS_KEY_FIXTURE_H

#include "verbs_fixture.h"

#include <sys/stat.h>

#include "connection/channel.h"
#include "packet/packet.h"
#include "packet/prove.h"
#include "rdm/transfer/packet.h"

#define KEY "the key of these tests"
#define ACCEPTED_KEY "the key before that"
#define SECOND UINT64_C(1000000000)
enum { CONTEXT = 5, PORT = 7777, PAIR = 77 };

static struct side side;
static uint32_t peer;
static union tcp_address there;

/* What the endpoint has said last by the connection manager, without the byte of its length. */
static struct {
    struct rdma_cm_id *id;
    uint32_t pair; /* the number of the queue pair, in a request */
    uint8_t bytes[UINT8_MAX], length;
} said;

/* --------------------------------------------------------------------------------------------------- the connection manager */

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
    (void)cq;
    (void)most;
    (void)completions;
    return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    (void)srq;
    (void)requests;
    (void)bad;
    return 0;
}

static struct ibv_qp *create_numbered_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    static uint32_t created;
    struct ibv_qp *qp = create_qp(pd, attr);

    qp->qp_num = ++created;
    return qp;
}

static void remember(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    assert_in_range(length, 1, sizeof(said.bytes));
    said.id = id;
    said.length = (uint8_t)(length - 1);
    memcpy(said.bytes, (const uint8_t *)data + 1, said.length);
}

static int connect_and_wait(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    said.pair = param->qp_num;
    remember(id, param->private_data, param->private_data_len);
    return 0;
}

static int accept_and_wait(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    remember(id, param->private_data, param->private_data_len);
    return 0;
}

static int reject_and_wait(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    remember(id, data, length);
    return 0;
}

/* The endpoint hears an event, and answers it. */
static void tell(struct rdma_cm_event event, const uint8_t *data, size_t length)
{
    static uint8_t bytes[UINT8_MAX];
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    event.param.conn.private_data = bytes;
    event.param.conn.private_data_len = verbs_private_data_encode(bytes, data, length);
    said.length = 0;
    pthread_mutex_lock(&cm_lock);
    cm_event = event;
    pthread_mutex_unlock(&cm_lock);
    assert_int_equal(eventfd_write(cm_channel->fd, 1), 0);
    while (cm_event.id) {
        ofp_domain_progress(side.domain);
        assert_true(ofpi_clock_read() < deadline);
    }
}

/* Wait for the endpoint's next request. */
static void hear_request(void)
{
    uint64_t deadline = ofpi_clock_read() + 5 * SECOND;

    while (!said.length) {
        ofp_domain_progress(side.domain);
        assert_true(ofpi_clock_read() < deadline);
    }
}

static struct rdma_cm_event reject_said(void)
{
    return (struct rdma_cm_event){.id = said.id, .event = RDMA_CM_EVENT_REJECTED, .status = VERBS_REJECTED_BY_PROGRAM};
}

/* ---------------------------------------------------------------------------------------------------------- both sides */

static void write_key(char *path, const char *key)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, strlen(key)), (ssize_t)strlen(key));
    assert_int_equal(fchmod(fd, 0600), 0);
    close(fd);
}

static int open_side(void **state)
{
    struct ofp_info info = played_info(OFP_EP_RDM, OFP_CAP_MSG | OFP_CAP_TAGGED);
    char path[] = "/tmp/ofipy-key-XXXXXX", accepted[] = "/tmp/ofipy-key-XXXXXX";

    (void)state;
    write_key(path, KEY);
    write_key(accepted, ACCEPTED_KEY);
    setenv("OFIPY_AUTH_KEY_FILE", path, 1);
    setenv("OFIPY_AUTH_KEY_FILE_ACCEPTED", accepted, 1);
    context.ops = (struct ibv_context_ops){.poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    fake_provider();
    side_open_info(&side, &info, OFP_PROGRESS_MANUAL, 0);
    unsetenv("OFIPY_AUTH_KEY_FILE");
    unsetenv("OFIPY_AUTH_KEY_FILE_ACCEPTED");
    unlink(path);
    unlink(accepted);
    verbs_calls.create_qp = create_numbered_qp;
    verbs_calls.connect = connect_and_wait;
    verbs_calls.accept = accept_and_wait;
    verbs_calls.reject = reject_and_wait;
    there = (union tcp_address){
        .v4 = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0xc0000202)}};
    assert_int_equal(ofp_av_insert(side.av, &there, tcp_address_get_length(&there), &peer), 0);
    said.length = 0;
    return 0;
}

static int close_side(void **state)
{
    (void)state;
    side_close(&side);
    return 0;
}

static void write_hello(uint8_t version, uint8_t bytes[OFPI_RDM_HELLO_SIZE])
{
    struct ofpi_rdm_hello hello = {
        .version = version, .oldest = version, .packet_size = 4224, .credits = {4, 4}, .incarnation = 3};

    ofpi_rdm_hello_encode(&hello, bytes);
}

/* The endpoint's own key, or the one that it only accepts. */
enum { OWN, ACCEPTED };

static const uint8_t *domain_key(int which)
{
    const struct verbs_rdm *rdm = ofpi_rdm_private_of(side.endpoint);

    return rdm->domain->keys.ring->keys[which].verbs_key;
}

static inline void post_send(void)
{
    static uint8_t byte = 1;
    struct ofp_operation op = tagged(OFP_TSEND, peer, 1, &byte, 1, CONTEXT);

    assert_int_equal(ofp_post(side.endpoint, &op, 1), 1);
}

/*
 * The endpoint's first request is answered with a challenge, and the endpoint proves the key `which`. The challenge's hello
 * speaks this version of rdm alone.
 */
static inline void challenge_caller(struct verbs_facts *facts, int which, uint8_t version)
{
    struct verbs_rdm *rdm = ofpi_rdm_private_of(side.endpoint);
    uint8_t bytes[VERBS_CHALLENGE_DATA_MAX] = {VERBS_REJECT_CHALLENGE, VERBS_PROOF_VERSION};
    struct verbs_path_request request;
    uint32_t first_pair;

    hear_request();
    assert_true(verbs_request_decode(said.bytes, said.length, &request));
    assert_true(request.has_key && !request.has_proof);
    first_pair = said.pair;
    *facts =
        (struct verbs_facts){.caller_hello_length = OFPI_RDM_HELLO_SIZE, .acceptor_hello_length = OFPI_RDM_HELLO_SIZE};
    memcpy(facts->caller_hello, request.hello, request.hello_length);
    facts->caller = rdm->address;
    facts->acceptor = there;
    /* Behind the two bytes: number, nonce, hello. */
    write_hello(version, facts->acceptor_hello);
    memcpy(bytes + 2 + VERBS_CHALLENGE_SIZE + VERBS_ACCEPTOR_NONCE_SIZE, facts->acceptor_hello, OFPI_RDM_HELLO_SIZE);
    tell(reject_said(), bytes, sizeof(bytes));
    /* A late copy of the first request would have a connection manager reject the same number as stale. */
    hear_request();
    assert_int_not_equal(said.pair, first_pair);
    /* The operation has not failed yet: the other side is to believe our versions. */
    assert_true(verbs_request_decode(said.bytes, said.length, &request));
    assert_true(request.has_proof);
    memcpy(facts->caller_nonce, request.nonce, sizeof(facts->caller_nonce));
    assert_true(verbs_proof_is_valid(domain_key(which), facts, VERBS_CALLER, said.pair, request.proof));
}

/* A peer requests a path. The endpoint answers at once. */
static inline void call_side(const uint8_t *data, size_t length)
{
    struct rdma_cm_id *id = calloc(1, sizeof(*id));

    assert_non_null(id);
    memcpy(&id->route.addr.dst_addr, &there, sizeof(there.v4));
    id->verbs = cm_listener->verbs;
    id->channel = cm_channel;
    tell(
        (struct rdma_cm_event){
            .id = id, .listen_id = cm_listener, .event = RDMA_CM_EVENT_CONNECT_REQUEST, .param.conn.qp_num = PAIR},
        data, length);
    assert_ptr_equal(said.id, id);
}

/*
 * A peer that speaks this version of rdm alone requests a path and is answered with a challenge, which costs the endpoint no
 * completion. Then it requests again with a proof of the key `which`; if `proves` is false, with a wrong one.
 */
static inline void call_with_proof(struct verbs_facts *facts, int which, uint8_t version, bool proves)
{
    struct verbs_rdm *rdm = ofpi_rdm_private_of(side.endpoint);
    uint8_t first[VERBS_FIRST_REQUEST_MAX], second[VERBS_PROOF_REQUEST_SIZE], proof[OFPI_PROOF_SIZE];
    struct ofp_completion row;

    *facts = (struct verbs_facts){.caller_hello_length = OFPI_RDM_HELLO_SIZE};
    write_hello(version, facts->caller_hello);
    call_side(first, verbs_first_request_encode(first, PORT, facts->caller_hello, OFPI_RDM_HELLO_SIZE, true));
    assert_true(verbs_challenge_decode(said.bytes, said.length, facts));
    ofp_domain_progress(side.domain);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
    facts->caller = there;
    facts->acceptor = rdm->address;
    verbs_proof_compute(domain_key(which), facts, VERBS_CALLER, PAIR, proof);
    proof[0] ^= !proves;
    call_side(second, verbs_second_request_encode(second, PORT, facts, proof));
}

/* The posted operation has ended with this error; its reason is written to `text`. */
static inline void read_end(int error, char text[OFP_TEXT_MAX])
{
    struct ofp_completion row;

    ofp_domain_progress(side.domain);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, CONTEXT);
    assert_int_equal(row.error, error);
    ofp_reason(row.provider_error, text, OFP_TEXT_MAX);
}

#endif
