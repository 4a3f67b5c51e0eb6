/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_total.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofipy/operation.h"

/* Guarded by profile_totals_lock. A process that is forked begins with none. */
pthread_mutex_t profile_totals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct profile_row *totals;
static pid_t owner;

/* ------------------------------------------------------------------------------------------------------------- the table */

/* Below which this share of what was counted lies. */
static double bound(const uint64_t *places, double share)
{
    uint64_t all = 0, seen = 0;
    int place = 0;

    for (int i = 0; i < PROFILE_PLACES; i++)
        all += places[i];
    for (; place < PROFILE_PLACES - 1 && (double)(seen += places[place]) < share * (double)all; place++)
        ;
    return place ? (double)(1ull << (place - 1)) * 2 : 0;
}

static const char *duration(double ns, char text[16])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;

    for (; ns >= 1000 && unit < 3; unit++)
        ns /= 1000;
    snprintf(text, 16, "%.3g %s", ns, units[unit]);
    return text;
}

static const char *name_of(const struct profile_row *row)
{
    if (row->address[0])
        return row->address;
    return row->peer == OFP_PEER_ANY ? "any" : "unknown";
}

static void print_row(const struct profile_row *row)
{
    const struct profile_counts *counts = &row->counts;
    char half[16], most[16];

    fprintf(stderr, "%-15s %10llu %8llu %15llu %12.0f %10s %10s  %s\n", ofp_operation_name(row->code),
            (unsigned long long)counts->operations, (unsigned long long)counts->errors,
            (unsigned long long)counts->bytes, bound(counts->sizes, 0.5), duration(bound(counts->latencies, 0.5), half),
            duration(bound(counts->latencies, 0.99), most), name_of(row));
}

static void print_table(void)
{
    pthread_mutex_lock(&profile_totals_lock);
    if (owner == getpid() && totals) {
        fprintf(stderr,
                "ofipy: hook profile: process %ld; half of the sizes, and half and 99 %% of the times, are below\n"
                "%-15s %10s %8s %15s %12s %10s %10s  %s\n",
                (long)owner, "operation", "count", "errors", "bytes", "size", "time", "99 %", "peer");
        for (const struct profile_row *row = totals; row; row = row->next)
            print_row(row);
    }
    pthread_mutex_unlock(&profile_totals_lock);
}

/* --------------------------------------------------------------------------------------------------------------- sums */

static bool same(const struct profile_row *a, const struct profile_row *b)
{
    return a->code == b->code && strcmp(name_of(a), name_of(b)) == 0;
}

static struct profile_row *total_of(const struct profile_row *row)
{
    struct profile_row **place = &totals;

    while (*place && !same(*place, row) && (*place)->code <= row->code)
        place = &(*place)->next;
    if (!*place || !same(*place, row)) {
        struct profile_row *total = calloc(1, sizeof(*total));

        if (!total)
            return NULL;
        *total = (struct profile_row){.next = *place, .peer = row->peer, .code = row->code};
        memcpy(total->address, row->address, sizeof(total->address));
        *place = total;
    }
    return *place;
}

static void add(struct profile_counts *sum, const struct profile_counts *counts)
{
    sum->operations += counts->operations;
    sum->errors += counts->errors;
    sum->bytes += counts->bytes;
    for (int i = 0; i < PROFILE_PLACES; i++) {
        sum->sizes[i] += counts->sizes[i];
        sum->latencies[i] += counts->latencies[i];
    }
}

/* The lock is held. */
static void begin(void)
{
    static bool registered;

    if (owner == getpid())
        return;
    owner = getpid();
    totals = NULL; /* those of the process that forked this one are its own affair */
    if (!registered)
        atexit(print_table);
    registered = true;
}

void profile_total_add(const struct profile_row *rows)
{
    pthread_mutex_lock(&profile_totals_lock);
    begin();
    for (; rows; rows = rows->next) {
        struct profile_row *total = total_of(rows);

        if (total)
            add(&total->counts, &rows->counts);
    }
    pthread_mutex_unlock(&profile_totals_lock);
}
