/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hash index of posted receives or unexpected messages, by channel, source and tag. Entries with one key stay in order.
 *
 * Nodes are embedded in the entries. The caller owns the entries, and must remove each from the index before it frees
 * the entry. The oldest entry of a key (the head) is in its bucket's chain, and the others form a ring with it. So a
 * lookup ends at the oldest entry:
 *
 *     bucket -> head(key a) -> head(key b) -> ...          chain: next, link
 *                  |
 *               entry <-> entry <-> (head)                 ring: same_next, same_previous, by rising sequence
 *
 * Lookup, insertion at the end of a ring and removal need constant expected time. Growth moves a few buckets with each
 * insertion. The index has no lock of its own: the domain's lock is held.
 */
#ifndef OFPI_MATCH_INDEX_H
#define OFPI_MATCH_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct ofpi_match_key {
    uint64_t tag;    /* without the bits that the index ignores */
    uint64_t origin; /* channel and source, see ofpi_match_origin_build */
};

struct ofpi_match_node {
    struct ofpi_match_node *next;  /* heads only: the next head in the chain */
    struct ofpi_match_node **link; /* heads only: the pointer that points to this node; NULL: not a head */
    struct ofpi_match_node *same_next;
    struct ofpi_match_node *same_previous; /* of a head: the newest entry with its key */
    struct ofpi_match_key key;             /* set by the caller before insertion */
    uint64_t sequence;                     /* set by the caller before insertion; unique in the index */
};

struct ofpi_match_index {
    struct ofpi_match_node **buckets;
    struct ofpi_match_node **old_buckets; /* during growth: half as many, not all empty yet; else NULL */
    uint64_t moved;                       /* old buckets below this one are empty */
    uint64_t count;                       /* entries */
    uint64_t keys;                        /* distinct keys: the sum of the lengths of all chains */
    uint64_t seed[2];                     /* secret: peers choose tags, and must not be able to choose collisions */
    uint32_t shift, old_shift;            /* a bucket's number is hash >> shift */
};

int ofpi_match_index_open(struct ofpi_match_index *index, const uint64_t seed[2]);
/* Entries that are still in the index are not freed. */
void ofpi_match_index_close(struct ofpi_match_index *index);

/* Insert by sequence among the entries with the same key: usually the node is the newest of them. */
void ofpi_match_index_insert(struct ofpi_match_index *index, struct ofpi_match_node *node);
void ofpi_match_index_remove(struct ofpi_match_index *index, struct ofpi_match_node *node);

static inline uint64_t ofpi_match_origin_build(uint32_t channel, uint32_t source)
{
    return (uint64_t)channel << 32 | source;
}

static inline uint64_t ofpi_match_hash_compute(const struct ofpi_match_index *index, struct ofpi_match_key key)
{
    __uint128_t product = (__uint128_t)(key.tag ^ index->seed[0]) * (key.origin ^ index->seed[1]);

    /* The top bits choose the bucket. The second product makes them depend on every bit. */
    return ((uint64_t)product ^ (uint64_t)(product >> 64)) * 0x9e3779b97f4a7c15u;
}

static inline struct ofpi_match_node **ofpi_match_index_find_bucket(const struct ofpi_match_index *index, uint64_t hash)
{
    if (index->old_buckets && hash >> index->old_shift >= index->moved)
        return &index->old_buckets[hash >> index->old_shift];
    return &index->buckets[hash >> index->shift];
}

/* The oldest entry with this key, or NULL. */
static inline struct ofpi_match_node *ofpi_match_index_find(const struct ofpi_match_index *index,
                                                            struct ofpi_match_key key)
{
    struct ofpi_match_node *node = *ofpi_match_index_find_bucket(index, ofpi_match_hash_compute(index, key));

    while (node && (node->key.tag != key.tag || node->key.origin != key.origin))
        node = node->next;
    return node;
}

#endif
