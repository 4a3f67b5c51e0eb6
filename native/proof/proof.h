/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proofs that a side of a connection has the key. A proof is
 *
 *     HMAC-SHA256(key, transcript)
 *
 * The transcript is what the proof covers: the role of the prover, fresh random numbers of both sides, and everything else
 * that both sides must agree on. Each provider documents its own. Every field of a transcript has a fixed size, or its length
 * before it. Otherwise two different situations could have the same bytes, and one proof would count for both.
 *
 * Nothing here allocates memory or has state outside its arguments, so any thread may call it.
 */
#ifndef OFPI_PROOF_H
#define OFPI_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proof/sha256.h"

#define OFPI_PROOF_SIZE OFPI_SHA256_SIZE
#define OFPI_TRANSCRIPT_MAX 512

/* The caller owns it and clears it before the first field: `struct ofpi_transcript transcript = {0}`. */
struct ofpi_transcript {
    uint8_t bytes[OFPI_TRANSCRIPT_MAX];
    size_t length; /* more than OFPI_TRANSCRIPT_MAX: a field did not fit, and no proof of this transcript is valid */
};

/* Add a field. The fields of one transcript have a bounded size, so one that does not fit is a fault of the caller. */
void ofpi_transcript_add(struct ofpi_transcript *transcript, const void *bytes, size_t length);
/* The proof to send. */
void ofpi_proof_compute(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                        uint8_t proof[OFPI_PROOF_SIZE]);
/* Check a peer's proof. The time that this takes does not depend on where the proofs differ. */
bool ofpi_proof_is_valid(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                         const uint8_t proof[OFPI_PROOF_SIZE]);

#endif
