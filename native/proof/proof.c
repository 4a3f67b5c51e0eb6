/* SPDX-License-Identifier: BSD-3-Clause */
#include "proof/proof.h"

#include <string.h>

#include "ofipy/check.h"

static bool is_complete(const struct ofpi_transcript *transcript) { return transcript->length <= OFPI_TRANSCRIPT_MAX; }

void ofpi_transcript_add(struct ofpi_transcript *transcript, const void *bytes, size_t length)
{
    bool fits = is_complete(transcript) && length <= OFPI_TRANSCRIPT_MAX - transcript->length;

    OFP_CHECK(fits);
    if (!fits) {
        transcript->length = OFPI_TRANSCRIPT_MAX + 1;
        return;
    }
    if (length)
        memcpy(transcript->bytes + transcript->length, bytes, length);
    transcript->length += length;
}

void ofpi_proof_compute(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                        uint8_t proof[OFPI_PROOF_SIZE])
{
    OFP_CHECK(key_length > 0 && is_complete(transcript));
    memset(proof, 0, OFPI_PROOF_SIZE);
    if (key_length && is_complete(transcript))
        ofpi_hmac_compute(key, key_length, transcript->bytes, transcript->length, proof);
}

bool ofpi_proof_is_valid(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                         const uint8_t proof[OFPI_PROOF_SIZE])
{
    uint8_t expected[OFPI_PROOF_SIZE];
    /* volatile: the compiler must not end the loop at the first difference. */
    volatile uint8_t difference = 0;

    ofpi_proof_compute(key, key_length, transcript, expected);
    for (int i = 0; i < OFPI_PROOF_SIZE; i++)
        difference = difference | (expected[i] ^ proof[i]);
    return key_length && is_complete(transcript) && difference == 0;
}
