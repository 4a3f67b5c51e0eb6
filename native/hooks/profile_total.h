/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of the hook `profile`, and their sums over all closed endpoints of the process. A table of the sums is
 * written to standard error when the process ends. Sums: any thread, own lock.
 */
#ifndef PROFILE_TOTAL_H
#define PROFILE_TOTAL_H

#include <pthread.h>

#include "ofipy/types.h"

/* Guards all sums. */
extern pthread_mutex_t profile_totals_lock;

#define PROFILE_ADDRESS_MAX 128
/* Place 0: zero; place k: from 2^(k-1) to 2^k - 1. */
#define PROFILE_PLACES 65

struct profile_counts {
    uint64_t operations, errors; /* `operations` includes `errors` */
    uint64_t bytes;              /* of operations without error, as both histograms */
    uint64_t sizes[PROFILE_PLACES];
    uint64_t latencies[PROFILE_PLACES]; /* ns */
};

struct profile_row {
    struct profile_row *next;
    struct profile_row *in_bucket;     /* the next, at an endpoint */
    uint32_t peer;                     /* index, OFP_PEER_ANY, OFP_PEER_UNKNOWN */
    uint16_t code;                     /* OFP_SEND … */
    char address[PROFILE_ADDRESS_MAX]; /* "tcp://…"; empty: not known */
    struct profile_counts counts;
};

/* Add these rows by operation and address. Rows for which there is no memory are left out. */
void profile_total_add(const struct profile_row *rows);

#endif
