/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sentences that say why operations failed: what happened; what to do. A completion has room for a number only, so a sentence gets one, which travels as
 * its provider_error until somebody asks for the text. The last ones are kept: whoever asks later learns the error all the
 * same.
 */
#include "base/reason.h"

#include <stdio.h>
#include <string.h>

#include "base/process_lock.h"
#include "ofipy/ofp.h"

#define REASONS 256

/* Guarded by OFPI_LOCK_REASONS. Sentence n, from 0 on, is at n % REASONS until another one takes its place. */
static char reasons[REASONS][OFP_TEXT_MAX];
static uint32_t reason_count;

static uint32_t find_oldest_reason(void) { return reason_count > REASONS ? reason_count - REASONS : 0; }

int ofpi_reason_store(const char *text)
{
    uint32_t number;

    ofpi_process_lock_acquire(OFPI_LOCK_REASONS);
    /* Most failures come in swarms, one sentence for all of them. */
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

/* Of a call that returns an error there is no completion to carry the number. */
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
