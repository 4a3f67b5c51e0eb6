/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which key a path proves. A domain has a ring of keys: its own, and those that it accepts too
 * (OFIPY_AUTH_KEY_FILE_ACCEPTED). The caller begins with its own, and if the peer refuses that, requests the path again
 * with the next one. The acceptor proves the key that the caller has proven. The caller holds the domain's lock.
 */
#include "packet/key.h"

void verbs_keys_update(struct verbs_domain *domain)
{
    ofpi_key_files_update_and_log(&domain->keys, verbs_core, VERBS_NAME);
}

const uint8_t *verbs_key_verify(const struct verbs_domain *domain, const struct verbs_facts *facts,
                                uint32_t pair_number, const uint8_t proof[OFPI_PROOF_SIZE])
{
    const struct ofpi_keyring *ring = domain->keys.ring;

    for (uint32_t i = 0; i < ring->count; i++)
        if (verbs_proof_is_valid(ring->keys[i].verbs_key, facts, VERBS_CALLER, pair_number, proof))
            return ring->keys[i].verbs_key;
    return NULL;
}

void verbs_path_key_start(struct verbs_path *path)
{
    struct verbs_domain *domain = path->rdm->domain;

    verbs_keys_update(domain);
    path->ring = ofpi_keyring_retain(domain->keys.ring);
    path->key_number = 0;
}

const uint8_t *verbs_path_key_get(const struct verbs_path *path)
{
    return path->ring->keys[path->key_number].verbs_key;
}

bool verbs_path_key_advance(struct verbs_path *path) { return ofpi_keyring_advance(path->ring, &path->key_number); }

void verbs_path_key_end(struct verbs_path *path)
{
    ofpi_keyring_release(path->ring);
    path->ring = NULL;
}
