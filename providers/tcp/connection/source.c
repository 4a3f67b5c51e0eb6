/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/source.h"

#include <stddef.h>

/* About a hundred handshakes: a host whose processes all connect at once has proven some of them by then. */
#define CREDIT UINT64_C(25000000)
/* A source that has spent its credit gets one part of the time in so many. */
#define SHARE 100
/* A step that took longer was interrupted: the processor did something else meanwhile, which no peer has caused. */
#define STEP_MAX UINT64_C(1000000)
#define NETWORK_BYTES 8

uint8_t tcp_source_find(const union tcp_address *address)
{
    size_t length;
    const uint8_t *ip = tcp_address_get_ip(address, &length);
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < length && i < NETWORK_BYTES; i++)
        hash = (hash ^ ip[i]) * 16777619u;
    return (uint8_t)((hash ^ hash >> 16) % TCP_SOURCES);
}

/* Time that passes forgives what was spent. The rest of the division counts for the next call. */
static void update_account(struct tcp_source *source, uint64_t now)
{
    uint64_t forgiven = (now - source->updated) / SHARE;

    source->spent = source->spent > forgiven ? source->spent - forgiven : 0;
    source->updated += forgiven * SHARE;
}

void tcp_source_charge(struct tcp_source *source, uint64_t cost, uint64_t now)
{
    update_account(source, now);
    source->spent += cost < STEP_MAX ? cost : STEP_MAX;
}

uint64_t tcp_source_compute_turn(struct tcp_source *source, uint64_t now)
{
    update_account(source, now);
    return source->spent <= CREDIT ? now : now + (source->spent - CREDIT) * SHARE;
}

void tcp_source_clear(struct tcp_source *source) { source->spent = 0; }
