/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sentences that say why operations failed: what happened; what to do. A completion has space for a number only, so
 * each sentence gets a number, which the completion carries as its provider_error. Only the newest sentences are
 * stored. If a sentence was overwritten, the error code is still known.
 */
#include "base/reason.h"

#include <stdio.h>
#include <string.h>

#include "base/process_lock.h"
#include "ofipy/ofp.h"

#define REASONS 256

/* Guarded by OFPI_LOCK_REASONS. Sentence n, from 0 on, is stored at n % REASONS until a newer one overwrites it. */
static char reasons[REASONS][OFP_TEXT_MAX];
static uint32_t reason_count;

static uint32_t find_oldest_reason(void) { return reason_count > REASONS ? reason_count - REASONS : 0; }

int ofpi_reason_store(const char *text)
{
    uint32_t number;

    ofpi_process_lock_acquire(OFPI_LOCK_REASONS);
    /* Many operations usually fail for the same reason: use the stored sentence again. */
    for (number = reason_count; number > find_oldest_reason(); number--)
        if (strncmp(reasons[(number - 1) % REASONS], text, OFP_TEXT_MAX - 1) == 0)
            break;
    if (number == find_oldest_reason()) {
        snprintf(reasons[reason_count % REASONS], OFP_TEXT_MAX, "%s", text);
        number = ++reason_count;
    }
    ofpi_process_lock_release(OFPI_LOCK_REASONS);
    return (int)((number - 1) % OFP_REASON) + OFP_REASON;
}

/* The number for a call that returns an error, since it has no completion to carry it. */
static _Thread_local int explained;

int ofpi_reason_report(const char *text) { return explained = ofpi_reason_store(text); }

int ofp_explained(void)
{
    int code = explained;

    explained = 0;
    return code;
}

int ofp_reason(int code, char *text, size_t text_size)
{
    uint32_t ago;
    int found;

    text[0] = 0;
    if (code < OFP_REASON)
        return 0;
    ofpi_process_lock_acquire(OFPI_LOCK_REASONS);
    ago = (reason_count - (uint32_t)code) & (OFP_REASON - 1);
    found = ago > 0 && ago <= reason_count - find_oldest_reason();
    if (found)
        snprintf(text, text_size, "%s", reasons[(reason_count - ago) % REASONS]);
    ofpi_process_lock_release(OFPI_LOCK_REASONS);
    return found;
}
