/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHA-256 (FIPS 180-4), HMAC with it (RFC 2104), and keys derived with that (HKDF, RFC 5869). The functions have no state
 * and allocate nothing, so any thread may call them.
 */
#ifndef OFPI_SHA256_H
#define OFPI_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define OFPI_SHA256_SIZE 32

struct ofpi_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes hashed so far */
    uint8_t block[64];
};

void ofpi_sha256_init(struct ofpi_sha256 *hash);
void ofpi_sha256_add(struct ofpi_sha256 *hash, const void *bytes, size_t length);
void ofpi_sha256_end(struct ofpi_sha256 *hash, uint8_t digest[OFPI_SHA256_SIZE]);
/* HMAC-SHA256. A key may have any length, and be empty (NULL). */
void ofpi_hmac_compute(const uint8_t *key, size_t key_length, const void *bytes, size_t length,
                       uint8_t digest[OFPI_SHA256_SIZE]);
/*
 * HKDF-SHA256 with an empty salt: the first 32 bytes that `key` yields for the use that `info` names. Keys derived for
 * two uses reveal nothing about each other.
 */
void ofpi_hkdf_compute(const uint8_t *key, size_t key_length, const char *info, uint8_t derived[OFPI_SHA256_SIZE]);

#endif
