/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for proofs of a few hundred bytes. */
#ifndef TCP_SHA256_H
#define TCP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define TCP_SHA256_SIZE 32

struct tcp_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes hashed so far */
    uint8_t block[64];
};

void tcp_sha256_init(struct tcp_sha256 *hash);
void tcp_sha256_add(struct tcp_sha256 *hash, const void *bytes, size_t length);
void tcp_sha256_end(struct tcp_sha256 *hash, uint8_t digest[TCP_SHA256_SIZE]);
void tcp_hmac_compute(const void *key, size_t key_length, const void *bytes, size_t length,
                      uint8_t digest[TCP_SHA256_SIZE]);

#endif
