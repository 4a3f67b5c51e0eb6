/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of RMA and atomics over shared memory share: regions with keys of the test's choice, and who visits them. */
#ifndef TEST_SHM_MEMORY_H
#define TEST_SHM_MEMORY_H

#include "link/table.h"
#include "shm.h"
#include "test_shm_fixture.h"

enum { OWNER, VISITOR };
enum { PLAIN = 1, MAPPED = 2, SEALED = 3, COUNTER = 4 };
#define SIZE 204800 /* whole pages */

static inline uint32_t register_key(struct side *side, uint8_t *base, uint64_t length, uint32_t access, uint64_t key)
{
    struct ofp_region_attr attr = {.base = base, .length = length, .access = access, .has_key = 1, .key = key};
    struct ofp_region_handle handle;

    CHECK_EQUAL(ofp_region_register(side->domain, &attr, &handle), 0);
    return handle.id;
}

static inline uint8_t *allocate_key(struct side *side, uint64_t length, uint64_t key, uint32_t *id)
{
    struct ofp_region_attr attr = {.length = length, .access = BOTH_WAYS, .has_key = 1, .key = key};
    struct ofp_region_handle handle;
    char text[OFP_TEXT_MAX];

    CHECK_EQUAL(ofp_region_allocate(side->domain, &attr, &handle, text, sizeof(text)), 0);
    *id = handle.id;
    return handle.base;
}

static inline struct shm_link *link_to(struct side *side, uint32_t peer)
{
    const struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i] && endpoint->links[i]->peer && endpoint->links[i]->peer->index == peer)
            return endpoint->links[i];
    return NULL;
}

static inline void finish_one(struct side *side, struct ofp_operation op)
{
    op.context = 1;
    post(side, op);
    CHECK_EQUAL(next_completion(side).error, 0);
}

/* Until the peer's table is here, and the arena that a region lies in. */
static inline void map_what_there_is(struct side *side, uint32_t peer)
{
    uint64_t deadline = now_ns() + PATIENCE;
    struct shm_target target;
    uint8_t byte;

    for (;;) {
        struct shm_link *link;
        const struct shm_region_entry *table;

        finish_one(side, remote(OFP_READ, peer, &byte, 1, MAPPED, 1));
        link = link_to(side, peer);
        table = shm_table_resolve(link);
        if (table && shm_table_find(table, MAPPED, &target) && target.arena &&
            shm_foreign_arena_resolve(link, target.arena, target.arena_offset, target.length))
            return;
        CHECK(now_ns() < deadline);
    }
}

static inline struct ofp_operation add_one(uint32_t peer, uint64_t key, uint64_t *fetched)
{
    static uint64_t one = 1;
    struct ofp_operation op = remote(OFP_FETCH_ATOMIC, peer, &one, sizeof(one), key, 1);

    op.atomic_op = OFP_ATOMIC_SUM;
    op.datatype = OFP_UINT64;
    op.result_offset = (uint64_t)(uintptr_t)fetched;
    return op;
}

static inline void refuse(struct side *side, struct ofp_operation op, int reason)
{
    struct ofp_completion row;

    post(side, op);
    row = next_completion(side);
    CHECK_EQUAL(row.error, OFP_EREMOTE);
    CHECK_EQUAL(row.provider_error, reason);
}

#endif
