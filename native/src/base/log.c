/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's log: a ring of records, until ofp_log_next reads them. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/process_lock.h"
#include "ofipy/atomics.h"
#include "ofipy/ofp.h"

#define RECORDS 512 /* a power of two */

struct record {
    int level;
    char provider[32];
    char text[OFP_TEXT_MAX];
};

/* Guarded by OFPI_LOCK_LOG, except that `waiting` and `threshold` are read without it. */
static struct record records[RECORDS];
static uint32_t first;
static uint64_t lost;
static _Atomic uint32_t waiting;
static _Atomic int threshold = OFP_LOG_WARNING;

void ofpi_log_write(enum ofp_log_level level, const char *provider, const char *format, ...)
{
    struct record *record;
    va_list arguments;

    if ((int)level < ofp_load_relaxed(&threshold))
        return;
    ofpi_process_lock_acquire(OFPI_LOCK_LOG);
    if (ofp_load_relaxed(&waiting) == RECORDS) {
        first++;
        lost++;
        ofp_store_relaxed(&waiting, RECORDS - 1);
    }
    record = &records[(first + ofp_load_relaxed(&waiting)) % RECORDS];
    record->level = level;
    snprintf(record->provider, sizeof(record->provider), "%s", provider);
    va_start(arguments, format);
    vsnprintf(record->text, sizeof(record->text), format, arguments);
    va_end(arguments);
    ofp_store_relaxed(&waiting, ofp_load_relaxed(&waiting) + 1);
    ofpi_process_lock_release(OFPI_LOCK_LOG);
}

int ofp_log_next(int *level, char *provider, size_t provider_size, char *text, size_t text_size)
{
    int found = 0;

    ofpi_process_lock_acquire(OFPI_LOCK_LOG);
    if (lost) {
        *level = OFP_LOG_WARNING;
        snprintf(provider, provider_size, "core");
        snprintf(text, text_size, "%llu log records were lost: nobody took them in time", (unsigned long long)lost);
        lost = 0;
        found = 1;
    } else if (ofp_load_relaxed(&waiting)) {
        const struct record *record = &records[first++ % RECORDS];

        *level = record->level;
        snprintf(provider, provider_size, "%s", record->provider);
        snprintf(text, text_size, "%s", record->text);
        ofp_store_relaxed(&waiting, ofp_load_relaxed(&waiting) - 1);
        found = 1;
    }
    ofpi_process_lock_release(OFPI_LOCK_LOG);
    return found;
}

int ofp_log_waiting(void) { return ofp_load_relaxed(&waiting) != 0; }

void ofp_log_set_level(int level) { ofp_store_relaxed(&threshold, level); }
