/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/match_index.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SHIFT 60 /* 16 buckets: an endpoint has four indexes, most with few entries */
#define LAST_SHIFT 32  /* at most 2^32 buckets */
/*
 * With n old buckets, growth ends after n / 4 insertions. The next growth begins at the earliest n / 2 insertions after
 * the last one began, so two growths never overlap.
 */
#define MOVES_PER_INSERT 4

static uint64_t compute_bucket_count(uint32_t shift) { return 1ull << (64 - shift); }

int ofpi_match_index_open(struct ofpi_match_index *index, const uint64_t seed[2])
{
    *index = (struct ofpi_match_index){.shift = FIRST_SHIFT, .seed = {seed[0], seed[1]}};
    index->buckets = calloc(compute_bucket_count(FIRST_SHIFT), sizeof(*index->buckets));
    return index->buckets ? 0 : -ENOMEM;
}

void ofpi_match_index_close(struct ofpi_match_index *index)
{
    free(index->buckets);
    free(index->old_buckets);
    *index = (struct ofpi_match_index){0};
}

static void push_head(struct ofpi_match_node **bucket, struct ofpi_match_node *node)
{
    node->next = *bucket;
    node->link = bucket;
    if (node->next)
        node->next->link = &node->next;
    *bucket = node;
}

/* `replacement`, of the same ring, replaces the head in the chain. */
static void replace_head(struct ofpi_match_node *head, struct ofpi_match_node *replacement)
{
    replacement->next = head->next;
    replacement->link = head->link;
    *replacement->link = replacement;
    if (replacement->next)
        replacement->next->link = &replacement->next;
    head->link = NULL;
}

static void move_bucket(struct ofpi_match_index *index)
{
    struct ofpi_match_node *node = index->old_buckets[index->moved], *following;

    for (; node; node = following) {
        following = node->next;
        push_head(&index->buckets[ofpi_match_hash_compute(index, node->key) >> index->shift], node);
    }
    index->moved++;
}

static void end_index_growth(struct ofpi_match_index *index)
{
    free(index->old_buckets);
    index->old_buckets = NULL;
}

/* If memory is short, the number of buckets stays: only the chains get longer. */
static void start_index_growth(struct ofpi_match_index *index)
{
    struct ofpi_match_node **buckets;

    if (index->shift == LAST_SHIFT)
        return;
    buckets = calloc(compute_bucket_count(index->shift - 1), sizeof(*buckets));
    if (!buckets)
        return;
    index->old_buckets = index->buckets;
    index->old_shift = index->shift;
    index->moved = 0;
    index->buckets = buckets;
    index->shift--;
}

static void advance_index_growth(struct ofpi_match_index *index)
{
    if (!index->old_buckets) {
        /* Each further head in a chain costs a lookup a cache miss. At half load few chains have a second head. */
        if (index->keys * 2 > compute_bucket_count(index->shift))
            start_index_growth(index);
        return;
    }
    for (int i = 0; i < MOVES_PER_INSERT && index->moved < compute_bucket_count(index->old_shift); i++)
        move_bucket(index);
    if (index->moved == compute_bucket_count(index->old_shift))
        end_index_growth(index);
}

static void insert_in_ring(struct ofpi_match_node *head, struct ofpi_match_node *node)
{
    struct ofpi_match_node *following = head;

    if (node->sequence < head->sequence) {
        replace_head(head, node);
    } else {
        node->link = NULL;
        /* Only a returned message is older than the newest entry. It is usually old: search from the front. */
        if (node->sequence < head->same_previous->sequence) {
            do
                following = following->same_next;
            while (following->sequence < node->sequence);
        }
    }
    node->same_next = following;
    node->same_previous = following->same_previous;
    node->same_previous->same_next = node;
    following->same_previous = node;
}

void ofpi_match_index_insert(struct ofpi_match_index *index, struct ofpi_match_node *node)
{
    struct ofpi_match_node **bucket, *head;

    advance_index_growth(index);
    bucket = ofpi_match_index_find_bucket(index, ofpi_match_hash_compute(index, node->key));
    for (head = *bucket; head; head = head->next) {
        if (head->key.tag == node->key.tag && head->key.origin == node->key.origin)
            break;
    }
    index->count++;
    if (head) {
        insert_in_ring(head, node);
        return;
    }
    index->keys++;
    node->same_next = node;
    node->same_previous = node;
    push_head(bucket, node);
}

void ofpi_match_index_remove(struct ofpi_match_index *index, struct ofpi_match_node *node)
{
    struct ofpi_match_node *following = node->same_next;

    OFPI_CHECK(index->count >= index->keys && index->keys);
    index->count--;
    if (following == node) {
        index->keys--;
        *node->link = node->next;
        if (node->next)
            node->next->link = node->link;
        return;
    }
    following->same_previous = node->same_previous;
    node->same_previous->same_next = following;
    if (node->link)
        replace_head(node, following);
}
