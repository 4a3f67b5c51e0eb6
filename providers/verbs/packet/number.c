/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/number.h"

#include <stdlib.h>

#define BUCKETS_FIRST 16

static struct verbs_path **bucket_of_path(struct verbs_path **by_number, uint32_t buckets,
                                          const struct verbs_path *path)
{
    return &by_number[path->number & (buckets - 1)];
}

static void add_to_bucket(struct verbs_path **bucket, struct verbs_path *path)
{
    path->next = *bucket;
    *bucket = path;
}

static bool grow_number_table(struct verbs_rdm *rdm)
{
    uint32_t buckets = rdm->buckets ? 2 * rdm->buckets : BUCKETS_FIRST;
    struct verbs_path **by_number = calloc(buckets, sizeof(struct verbs_path *)), *path;

    if (!by_number)
        return false;
    for (uint32_t i = 0; i < rdm->buckets; i++) {
        while ((path = rdm->by_number[i])) {
            rdm->by_number[i] = path->next;
            add_to_bucket(bucket_of_path(by_number, buckets, path), path);
        }
    }
    free(rdm->by_number);
    rdm->by_number = by_number;
    rdm->buckets = buckets;
    return true;
}

bool verbs_number_add(struct verbs_rdm *rdm, struct verbs_path *path)
{
    if (rdm->numbers == rdm->buckets && !grow_number_table(rdm))
        return false;
    add_to_bucket(bucket_of_path(rdm->by_number, rdm->buckets, path), path);
    rdm->numbers++;
    OFP_CHECK(rdm->numbers <= rdm->buckets);
    return true;
}

void verbs_number_remove(struct verbs_rdm *rdm, struct verbs_path *path)
{
    struct verbs_path **place = bucket_of_path(rdm->by_number, rdm->buckets, path);

    while (*place != path)
        place = &(*place)->next;
    *place = path->next;
    rdm->numbers--;
}
