/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The proof of a key between RDM endpoints: its messages, which are private data of the connection manager, and what a
 * proof covers. docs/explanation/verbs.md has both as tables. The functions have no side effects, and check every byte
 * that a peer may have written.
 */
#ifndef VERBS_PROVE_H
#define VERBS_PROVE_H

#include "address/address.h"
#include "packet/challenge.h"
#include "proof/proof.h"

/* The version of the proof. It never changes: by it sides without a common version of rdm prove what they speak. */
#define VERBS_PROOF_VERSION 1
#define VERBS_PORT_SIZE 2
/* A second request has exactly this length, and no first request has it. */
#define VERBS_PROOF_REQUEST_SIZE (VERBS_PORT_SIZE + VERBS_CHALLENGE_SIZE + VERBS_CALLER_NONCE_SIZE + OFPI_PROOF_SIZE)
#define VERBS_FIRST_REQUEST_MAX (VERBS_PORT_SIZE + OFPI_HELLO_MAX + 1)
#define VERBS_CHALLENGE_DATA_MAX (2 + VERBS_CHALLENGE_SIZE + VERBS_ACCEPTOR_NONCE_SIZE + OFPI_HELLO_MAX)
#define VERBS_PROVEN_ANSWER_MAX (OFPI_HELLO_MAX + OFPI_PROOF_SIZE)
#define VERBS_VERSION_DATA_MAX (1 + VERBS_PROVEN_ANSWER_MAX)
/* The number in the proof of an acceptor that refuses, and has no queue pair: no queue pair of a peer has it. */
#define VERBS_NO_PAIR 0

/* The first byte of a rejection. Versions without proofs know the first two, and take any other for the second. */
enum verbs_rejection {
    VERBS_REJECT,
    VERBS_REJECT_LATER,
    VERBS_REJECT_CHALLENGE,
    VERBS_REJECT_KEY_HERE,  /* the rejecting side has a key, and got no proof */
    VERBS_REJECT_KEY_THERE, /* the rejecting side has no key, and the other side has one */
    VERBS_REJECT_OTHER_KEY, /* the proof is invalid */
    VERBS_REJECT_VERSION    /* no version is common; the hello of the rejecting side follows, and a proof with a key */
};

enum verbs_role { VERBS_CALLER = 'c', VERBS_ACCEPTOR = 'a' };

/* Everything that both sides know of a connection, of which each proof covers all but the other role's pair number. */
struct verbs_facts {
    uint8_t challenge[VERBS_CHALLENGE_SIZE];
    uint8_t caller_nonce[VERBS_CALLER_NONCE_SIZE], acceptor_nonce[VERBS_ACCEPTOR_NONCE_SIZE];
    union ibv_gid caller_gid, acceptor_gid;
    union tcp_address caller, acceptor; /* where they listen */
    uint8_t caller_hello[OFPI_HELLO_MAX], acceptor_hello[OFPI_HELLO_MAX];
    uint8_t caller_hello_length, acceptor_hello_length;
};

/* A decoded first or second request. */
struct verbs_path_request {
    bool has_proof; /* a second request; else only `hello` is set */
    bool has_key;   /* a first request, whose caller can prove a key */
    uint16_t port;  /* at which the caller listens */
    const uint8_t *hello, *challenge, *nonce, *proof;
    size_t hello_length;
};

/* Encode a message; returns its length. `has_key`: the caller of a first request can prove a key. */
size_t verbs_first_request_encode(uint8_t bytes[VERBS_FIRST_REQUEST_MAX], uint16_t port, const uint8_t *hello,
                                  size_t length, bool has_key);
size_t verbs_second_request_encode(uint8_t bytes[VERBS_PROOF_REQUEST_SIZE], uint16_t port,
                                   const struct verbs_facts *facts, const uint8_t proof[OFPI_PROOF_SIZE]);
size_t verbs_challenge_encode(uint8_t bytes[VERBS_CHALLENGE_DATA_MAX], const struct verbs_challenge *challenge,
                              const uint8_t *hello, size_t length);
size_t verbs_answer_encode(uint8_t bytes[VERBS_PROVEN_ANSWER_MAX], const uint8_t *hello, size_t length,
                           const uint8_t proof[OFPI_PROOF_SIZE]);

/* Decode a message. False: it is none. The pointers refer to `bytes`. */
bool verbs_request_decode(const uint8_t *bytes, size_t length, struct verbs_path_request *request);
/* Fills the challenge, the acceptor's nonce and its hello. */
bool verbs_challenge_decode(const uint8_t *bytes, size_t length, struct verbs_facts *facts);
/* Replaces the acceptor's hello by that of the answer. */
bool verbs_answer_decode(const uint8_t *bytes, size_t length, struct verbs_facts *facts,
                         uint8_t proof[OFPI_PROOF_SIZE]);

/* The proof of one role, whose queue pair has this number. The key is a domain's. */
void verbs_proof_compute(const uint8_t key[OFPI_SHA256_SIZE], const struct verbs_facts *facts, enum verbs_role role,
                         uint32_t pair_number, uint8_t proof[OFPI_PROOF_SIZE]);
bool verbs_proof_is_valid(const uint8_t key[OFPI_SHA256_SIZE], const struct verbs_facts *facts, enum verbs_role role,
                          uint32_t pair_number, const uint8_t proof[OFPI_PROOF_SIZE]);
/* Why keys differ, for errors and the log. `rejection`: what the peer said; VERBS_REJECT_OTHER_KEY if unknown. */
const char *verbs_key_find_text(enum verbs_rejection rejection);

#endif
