/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_KEY_H
#define VERBS_KEY_H

#include "packet/packet.h"
#include "packet/prove.h"

/* Read the domain's keys again if their files have changed. */
void verbs_keys_update(struct verbs_domain *domain);
/* The key of the domain by which a caller's proof is valid; NULL: none. */
const uint8_t *verbs_key_verify(const struct verbs_domain *domain, const struct verbs_facts *facts,
                                uint32_t pair_number, const uint8_t proof[OFPI_PROOF_SIZE]);

/* The path begins to prove the domain's own key. Nothing happens if the domain has none. */
void verbs_path_key_start(struct verbs_path *path);
/* The key that the path proves. */
const uint8_t *verbs_path_key_get(const struct verbs_path *path);
/* Prove the next key from now on. False: there is none. */
bool verbs_path_key_advance(struct verbs_path *path);
/* The path has proven its key, or ends. */
void verbs_path_key_end(struct verbs_path *path);

#endif
