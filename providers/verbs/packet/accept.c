/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/accept.h"

#include <errno.h>
#include <string.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "packet/connect.h"
#include "packet/key.h"
#include "packet/log.h"
#include "packet/path.h"

/* A request of a peer while it is reported to the user, who answers it in that call. */
struct incoming {
    struct rdma_cm_id *id;
    struct verbs_facts *facts; /* the caller has proved a key of the domain; NULL: the domain has none */
    const uint8_t *key;        /* which; the domain owns it */
    uint8_t responder_resources, initiator_depth;
    bool answered;
};

static struct incoming *incoming_of_handle(uint64_t request) { return (struct incoming *)(uintptr_t)request; }

/*
 * Encode the hello, and behind it a proof of the key that the caller has proved. `pair_number`: of the queue pair
 * of the path, or VERBS_NO_PAIR. Returns the length.
 */
static size_t encode_answer(const struct incoming *incoming, uint32_t pair_number, const uint8_t *hello, size_t length,
                            uint8_t data[VERBS_PROVEN_ANSWER_MAX])
{
    struct verbs_facts *facts = incoming->facts;
    uint8_t proof[OFPI_PROOF_SIZE];

    if (!facts) {
        memcpy(data, hello, length);
        return length;
    }
    facts->acceptor_hello_length = (uint8_t)length;
    memcpy(facts->acceptor_hello, hello, length);
    verbs_proof_compute(incoming->key, facts, VERBS_ACCEPTOR, pair_number, proof);
    return verbs_answer_encode(data, hello, length, proof);
}

static int accept_path_request(struct verbs_path *path, const struct incoming *incoming, const uint8_t *hello,
                               size_t length)
{
    uint8_t data[VERBS_PROVEN_ANSWER_MAX], bytes[1 + VERBS_PROVEN_ANSWER_MAX];
    struct rdma_conn_param param;
    int result = verbs_path_pair_open(path);

    if (!result)
        result = verbs_path_pair_connect(path);
    if (result)
        return result;
    length = encode_answer(incoming, path->qp->qp_num, hello, length, data);
    param = verbs_path_parameters_build(path, bytes, verbs_private_data_encode(bytes, data, length));
    return verbs_calls.accept(path->id, &param) == 0 ? 0 : -errno;
}

int verbs_path_accept(struct ofpi_path *base, uint64_t request, const uint8_t *hello, size_t length)
{
    struct verbs_path *path = verbs_path_of(base);
    struct incoming *incoming = incoming_of_handle(request);
    int result;

    verbs_path_init(path, base, VERBS_PATH_ACCEPTED, verbs_path_event_handle);
    incoming->answered = true;
    path->id = incoming->id;
    path->id->context = &path->listener;
    verbs_resources_set_limit(&path->responder_resources, incoming->responder_resources);
    verbs_resources_set_limit(&path->initiator_depth, incoming->initiator_depth);
    result = accept_path_request(path, incoming, hello, length);
    if (result) {
        uint8_t later = VERBS_REJECT_LATER;

        verbs_deferral_log(path->rdm, path->id, strerror(-result));
        verbs_id_reject(path->id, &later, sizeof(later));
        verbs_path_remove(path);
    }
    path->connected = !result;
    /* A caller whose request reaches this has proved the key, if there is one. */
    path->base->proven = path->rdm->challenges != NULL;
    return result;
}

static void reject_incoming(struct verbs_rdm *rdm, struct incoming *incoming, const void *data, size_t length)
{
    incoming->answered = true;
    verbs_id_reject(incoming->id, data, length);
    verbs_id_close_later(rdm->domain, incoming->id, NULL);
}

void verbs_path_reject(struct ofpi_channel *channel, uint64_t request, enum ofpi_refusal why)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);
    struct incoming *incoming = incoming_of_handle(request);
    uint8_t data[VERBS_VERSION_DATA_MAX], hello[OFPI_HELLO_MAX];
    size_t length = 1;

    data[0] = why == OFPI_REFUSE_LATER ? VERBS_REJECT_LATER : VERBS_REJECT;
    if (why == OFPI_REFUSE_INCOMPATIBLE) {
        data[0] = VERBS_REJECT_VERSION;
        length += encode_answer(incoming, VERBS_NO_PAIR, hello, channel->user->first_hello(channel, hello), data + 1);
    }
    reject_incoming(rdm, incoming, data, length);
}

/* `rejection` is from the caller's view, and the text from ours. */
static void reject_for_key(struct verbs_rdm *rdm, struct incoming *incoming, enum verbs_rejection rejection,
                           enum verbs_rejection seen_here)
{
    uint8_t data = (uint8_t)rejection;

    verbs_key_difference_log(rdm, incoming->id, verbs_key_find_text(seen_here));
    reject_incoming(rdm, incoming, &data, sizeof(data));
}

/* The requester is at the address of its request, and at the port in its private data. */
static void report_path_request(struct verbs_rdm *rdm, struct incoming *incoming, uint16_t port, const uint8_t *hello,
                                size_t length)
{
    union tcp_address address;

    verbs_id_get_peer_address(incoming->id, &address);
    tcp_address_set_port(&address, port);
    rdm->channel->user->requested(rdm->channel,
                                  &(struct ofpi_path_request){.id = (uintptr_t)incoming,
                                                              .address = &address,
                                                              .address_length = tcp_address_get_length(&address),
                                                              .hello = hello,
                                                              .hello_length = length});
}

/* Answer a first request by a challenge. No peer is changed, and no queue pair is created. */
static void send_challenge(struct verbs_rdm *rdm, struct incoming *incoming, const struct verbs_path_request *request)
{
    struct verbs_challenge *challenge =
        verbs_challenge_open(rdm->challenges, &incoming->id->route.addr.addr.ibaddr.dgid, verbs_core->now());
    uint8_t data[VERBS_CHALLENGE_DATA_MAX], hello[OFPI_HELLO_MAX];

    if (!challenge)
        return;
    challenge->port = request->port;
    challenge->hello_length = (uint8_t)request->hello_length;
    memcpy(challenge->hello, request->hello, request->hello_length);
    reject_incoming(
        rdm, incoming, data,
        verbs_challenge_encode(data, challenge, hello, rdm->channel->user->first_hello(rdm->channel, hello)));
}

/* Report a second request, if its proof is valid. */
static void verify_caller(struct verbs_rdm *rdm, struct incoming *incoming, const struct verbs_path_request *request,
                          uint32_t pair_number)
{
    const struct rdma_ib_addr *ends = &incoming->id->route.addr.addr.ibaddr;
    struct verbs_facts facts = {.caller_gid = ends->dgid, .acceptor_gid = ends->sgid, .acceptor = rdm->address};
    struct verbs_challenge challenge;

    if (!verbs_challenge_end(rdm->challenges, request->challenge, &ends->dgid, verbs_core->now(), &challenge)) {
        verbs_deferral_log(rdm, incoming->id, "the challenge that it answers has ended");
        verbs_path_reject(rdm->channel, (uintptr_t)incoming, OFPI_REFUSE_LATER);
        return;
    }
    verbs_id_get_peer_address(incoming->id, &facts.caller);
    tcp_address_set_port(&facts.caller, challenge.port);
    memcpy(facts.challenge, challenge.number, sizeof(facts.challenge));
    memcpy(facts.acceptor_nonce, challenge.nonce, sizeof(facts.acceptor_nonce));
    memcpy(facts.caller_nonce, request->nonce, sizeof(facts.caller_nonce));
    memcpy(facts.caller_hello, challenge.hello, challenge.hello_length);
    facts.caller_hello_length = challenge.hello_length;
    facts.acceptor_hello_length = (uint8_t)rdm->channel->user->first_hello(rdm->channel, facts.acceptor_hello);
    verbs_keys_update(rdm->domain);
    incoming->key = verbs_key_verify(rdm->domain, &facts, pair_number, request->proof);
    if (request->port != challenge.port || !incoming->key) {
        reject_for_key(rdm, incoming, VERBS_REJECT_OTHER_KEY, VERBS_REJECT_OTHER_KEY);
        return;
    }
    incoming->facts = &facts;
    report_path_request(rdm, incoming, challenge.port, challenge.hello, challenge.hello_length);
}

/* A probe has no private data: it is rejected, and costs no challenge. */
static void handle_path_request(struct verbs_rdm *rdm, struct incoming *incoming, const struct verbs_event *event)
{
    struct verbs_path_request request;

    if (event->id->verbs != rdm->domain->port->context ||
        !verbs_request_decode(event->data, event->data_length, &request))
        return;
    if (rdm->challenges && request.has_proof)
        verify_caller(rdm, incoming, &request, event->pair_number);
    else if (rdm->challenges && request.has_key)
        send_challenge(rdm, incoming, &request);
    else if (rdm->challenges)
        reject_for_key(rdm, incoming, VERBS_REJECT_KEY_HERE, VERBS_REJECT_KEY_THERE);
    else if (request.has_proof || request.has_key)
        reject_for_key(rdm, incoming, VERBS_REJECT_KEY_THERE, VERBS_REJECT_KEY_HERE);
    else
        report_path_request(rdm, incoming, request.port, request.hello, request.hello_length);
}

void verbs_path_requested(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_rdm *rdm = OFP_CONTAINER_OF(listener, struct verbs_rdm, listener);
    struct incoming incoming = {
        .id = event->id, .responder_resources = event->responder_resources, .initiator_depth = event->initiator_depth};

    if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return;
    event->id->context = NULL;
    handle_path_request(rdm, &incoming, event);
    if (!incoming.answered)
        verbs_path_reject(rdm->channel, (uintptr_t)&incoming, OFPI_REFUSE);
}
