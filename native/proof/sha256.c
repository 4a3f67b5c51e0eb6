/* SPDX-License-Identifier: BSD-3-Clause */
#include "proof/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
static const uint32_t initial_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t compute_rotation(uint32_t value, unsigned count) { return value >> count | value << (32 - count); }

static void compute_schedule(const uint8_t block[64], uint32_t words[64])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t near = words[i - 2], far = words[i - 15];

        words[i] = words[i - 16] + (compute_rotation(far, 7) ^ compute_rotation(far, 18) ^ far >> 3) + words[i - 7] +
                   (compute_rotation(near, 17) ^ compute_rotation(near, 19) ^ near >> 10);
    }
}

static void update_state(uint32_t state[8], const uint8_t block[64])
{
    uint32_t words[64], v[8];

    compute_schedule(block, words);
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t first = v[7] + (compute_rotation(v[4], 6) ^ compute_rotation(v[4], 11) ^ compute_rotation(v[4], 25)) +
                         choice + round_constants[i] + words[i];
        uint32_t second =
            (compute_rotation(v[0], 2) ^ compute_rotation(v[0], 13) ^ compute_rotation(v[0], 22)) + majority;

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void ofpi_sha256_init(struct ofpi_sha256 *hash)
{
    memcpy(hash->state, initial_state, sizeof(hash->state));
    hash->length = 0;
}

void ofpi_sha256_add(struct ofpi_sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *from = bytes;

    while (length) {
        size_t filled = hash->length % 64, part = 64 - filled < length ? 64 - filled : length;

        memcpy(hash->block + filled, from, part);
        hash->length += part;
        from += part;
        length -= part;
        if (hash->length % 64 == 0)
            update_state(hash->state, hash->block);
    }
}

void ofpi_sha256_end(struct ofpi_sha256 *hash, uint8_t digest[OFPI_SHA256_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->length * 8;
    size_t filled = hash->length % 64;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    ofpi_sha256_add(hash, padding, filled < 56 ? 56 - filled : 120 - filled);
    ofpi_sha256_add(hash, length, sizeof(length));
    for (int i = 0; i < OFPI_SHA256_SIZE; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* Both hashes of an HMAC begin with a block: the key, combined with a byte of the hash's own. */
static void init_keyed_hash(struct ofpi_sha256 *hash, const uint8_t key[64], uint8_t mask)
{
    uint8_t pad[64];

    for (int i = 0; i < 64; i++)
        pad[i] = key[i] ^ mask;
    ofpi_sha256_init(hash);
    ofpi_sha256_add(hash, pad, sizeof(pad));
}

struct hmac {
    struct ofpi_sha256 inner, outer;
};

static void init_hmac(struct hmac *hmac, const uint8_t *key, size_t key_length)
{
    uint8_t block[64] = {0};

    if (key_length > sizeof(block)) {
        ofpi_sha256_init(&hmac->inner);
        ofpi_sha256_add(&hmac->inner, key, key_length);
        ofpi_sha256_end(&hmac->inner, block);
    } else if (key_length) {
        memcpy(block, key, key_length);
    }
    init_keyed_hash(&hmac->inner, block, 0x36);
    init_keyed_hash(&hmac->outer, block, 0x5c);
}

static void end_hmac(struct hmac *hmac, uint8_t digest[OFPI_SHA256_SIZE])
{
    uint8_t inner[OFPI_SHA256_SIZE];

    ofpi_sha256_end(&hmac->inner, inner);
    ofpi_sha256_add(&hmac->outer, inner, sizeof(inner));
    ofpi_sha256_end(&hmac->outer, digest);
}

void ofpi_hmac_compute(const uint8_t *key, size_t key_length, const void *bytes, size_t length,
                       uint8_t digest[OFPI_SHA256_SIZE])
{
    struct hmac hmac;

    init_hmac(&hmac, key, key_length);
    ofpi_sha256_add(&hmac.inner, bytes, length);
    end_hmac(&hmac, digest);
}

void ofpi_hkdf_compute(const uint8_t *key, size_t key_length, const char *info, uint8_t derived[OFPI_SHA256_SIZE])
{
    static const uint8_t number_of_block = 1;
    uint8_t extracted[OFPI_SHA256_SIZE];
    struct hmac hmac;

    /* Without a salt the RFC's key of the extraction is one digest of zeros, which HMAC pads as it does an empty key. */
    ofpi_hmac_compute(NULL, 0, key, key_length, extracted);
    init_hmac(&hmac, extracted, sizeof(extracted));
    ofpi_sha256_add(&hmac.inner, info, strlen(info));
    ofpi_sha256_add(&hmac.inner, &number_of_block, 1);
    end_hmac(&hmac, derived);
}
