/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/presence.h"

/* Minimal times, ns, for which a sender may not poll its ring, and for which it may poll and send no fragment. */
#define PATIENCE_ABSENT UINT64_C(4000)
#define PATIENCE_PRESENT UINT64_C(100000)

static uint64_t choose_longer(uint64_t a, uint64_t b) { return a > b ? a : b; }

void shm_presence_add_message(struct shm_link *link)
{
    struct shm_presence *presence = &link->presence;

    link->endpoint->pipelined++;
    if (presence->expected++)
        return;
    presence->looks = ofp_load_relaxed(&link->ring.header->looks);
    presence->fragments_seen = presence->fragments;
    presence->brought_at = presence->seen_at = shm_core->now();
}

void shm_presence_remove_message(struct shm_link *link)
{
    OFP_CHECK(link->presence.expected > 0 && link->endpoint->pipelined >= link->presence.expected);
    link->endpoint->pipelined--;
    link->presence.expected--;
}

bool shm_presence_check(struct shm_link *link, uint64_t fetch)
{
    struct shm_presence *presence = &link->presence;
    uint64_t now = shm_core->now();
    uint32_t looks = ofp_load_relaxed(&link->ring.header->looks);
    bool brought = presence->fragments != presence->fragments_seen;

    if (brought)
        presence->brought_at = now;
    if (brought || looks != presence->looks)
        presence->seen_at = now;
    presence->fragments_seen = presence->fragments;
    presence->looks = looks;
    return now - presence->seen_at < choose_longer(fetch, PATIENCE_ABSENT) &&
           now - presence->brought_at < choose_longer(fetch, PATIENCE_PRESENT);
}
