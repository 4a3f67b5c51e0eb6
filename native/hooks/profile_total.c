/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_total.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofipy/operation.h"

/* Guarded by profile_totals_lock. A forked process begins with empty totals. */
pthread_mutex_t profile_totals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct profile_row *totals;
static pid_t owner;

/* ------------------------------------------------------------------------------------------------------------- the table */

/* The upper bound of this share of the counted values. */
static double compute_bound(const uint64_t *places, double share)
{
    uint64_t all = 0, seen = 0;
    int place = 0;

    for (int i = 0; i < PROFILE_PLACES; i++)
        all += places[i];
    for (; place < PROFILE_PLACES - 1 && (double)(seen += places[place]) < share * (double)all; place++)
        ;
    return place ? (double)(1ull << (place - 1)) * 2 : 0;
}

static const char *format_duration(double ns, char text[16])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;

    for (; ns >= 1000 && unit < 3; unit++)
        ns /= 1000;
    snprintf(text, 16, "%.3g %s", ns, units[unit]);
    return text;
}

static const char *name_of_row(const struct profile_row *row)
{
    if (row->address[0])
        return row->address;
    return row->peer == OFP_PEER_ANY ? "any" : "unknown";
}

static void write_row(const struct profile_row *row)
{
    const struct profile_counts *counts = &row->counts;
    char half[16], most[16];

    fprintf(stderr, "%-15s %10llu %8llu %15llu %12.0f %10s %10s  %s\n", ofp_operation_name(row->code),
            (unsigned long long)counts->operations, (unsigned long long)counts->errors,
            (unsigned long long)counts->bytes, compute_bound(counts->sizes, 0.5),
            format_duration(compute_bound(counts->latencies, 0.5), half),
            format_duration(compute_bound(counts->latencies, 0.99), most), name_of_row(row));
}

static void write_table(void)
{
    pthread_mutex_lock(&profile_totals_lock);
    if (owner == getpid() && totals) {
        fprintf(stderr,
                "ofipy: hook profile: process %ld; half of the sizes, and half and 99 %% of the times, are below\n"
                "%-15s %10s %8s %15s %12s %10s %10s  %s\n",
                (long)owner, "operation", "count", "errors", "bytes", "size", "time", "99 %", "peer");
        for (const struct profile_row *row = totals; row; row = row->next)
            write_row(row);
    }
    pthread_mutex_unlock(&profile_totals_lock);
}

/* --------------------------------------------------------------------------------------------------------------- sums */

static bool is_same_row(const struct profile_row *a, const struct profile_row *b)
{
    return a->code == b->code && strcmp(name_of_row(a), name_of_row(b)) == 0;
}

static struct profile_row *get_total(const struct profile_row *row)
{
    struct profile_row **place = &totals;

    while (*place && !is_same_row(*place, row) && (*place)->code <= row->code)
        place = &(*place)->next;
    if (!*place || !is_same_row(*place, row)) {
        struct profile_row *total = calloc(1, sizeof(*total));

        if (!total)
            return NULL;
        *total = (struct profile_row){.next = *place, .peer = row->peer, .code = row->code};
        memcpy(total->address, row->address, sizeof(total->address));
        *place = total;
    }
    return *place;
}

static void add_counts(struct profile_counts *sum, const struct profile_counts *counts)
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
static void init_totals(void)
{
    static bool registered;

    if (owner == getpid())
        return;
    owner = getpid();
    totals = NULL; /* the parent process writes its own totals */
    if (!registered)
        atexit(write_table);
    registered = true;
}

void profile_total_add(const struct profile_row *rows)
{
    pthread_mutex_lock(&profile_totals_lock);
    init_totals();
    for (; rows; rows = rows->next) {
        struct profile_row *total = get_total(rows);

        if (total)
            add_counts(&total->counts, &rows->counts);
    }
    pthread_mutex_unlock(&profile_totals_lock);
}
