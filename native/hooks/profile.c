/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hook `profile`: how many operations of each kind ended with each peer, how large they were and how long they took
 * from post to completion. Refused operations are not counted.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_tree.h"
#include "ofipy/operation.h"
#include "profile_total.h"

#define BUCKETS 256 /* a power of two */

struct endpoint {
    struct profile_row *rows; /* newest first */
    struct profile_row *buckets[BUCKETS];
    bool table;
};

struct operation {
    uint64_t begin;
};

static const struct ofp_hook_core *core;

static const struct ofp_param options[] = {
    {"table", OFP_PARAM_BOOL, "yes", "Print the sums of all closed endpoints on standard error when the process ends",
     0, 0},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* -------------------------------------------------------------------------------------------------------------- rows */

static int compute_place(uint64_t number) { return number ? 64 - __builtin_clzll(number) : 0; }

static uint64_t compute_least(int place) { return place ? 1ull << (place - 1) : 0; }

/* Write the address as Python prints it. A quote would end the JSON string early. */
static void write_address(const struct ofp_hook_endpoint *hook, const struct ofp_peer *peer, char *text, size_t size)
{
    const struct ofp_provider *provider = hook->endpoint->domain->provider;
    const struct ofp_info *info = hook->endpoint->info;
    /* Addresses over several lanes have the scheme of the provider `link`. */
    const char *scheme = strcmp(provider->name, "link") == 0 ? provider->name : info->provider;
    size_t used = (size_t)snprintf(text, size, "%s://", scheme);

    /* Replace characters that names of layered providers have and a URI scheme must not. */
    for (char *each = strpbrk(text, ":;"); each && each < text + strlen(scheme); each = strpbrk(each, ":;"))
        *each = '+';
    if (used >= size ||
        provider->address_format(info, peer->address, peer->address_length, text + used, size - used) != 0)
        text[0] = 0;
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            *text = '?';
}

/* Find or create a row. NULL: out of memory, and the operation is not counted. */
static struct profile_row *get_row(struct ofp_hook_endpoint *hook, uint32_t code, uint32_t index, struct ofp_peer *peer)
{
    struct endpoint *endpoint = hook->private;
    struct profile_row **bucket = &endpoint->buckets[(index * 16 + code) & (BUCKETS - 1)];
    struct profile_row *row = *bucket;

    while (row && (row->code != code || row->peer != index))
        row = row->in_bucket;
    if (row)
        return row;
    row = calloc(1, sizeof(*row));
    if (!row)
        return NULL;
    row->code = (uint16_t)code;
    row->peer = index;
    if (peer || (peer = core->peer_at(hook, index)))
        write_address(hook, peer, row->address, sizeof(row->address));
    row->in_bucket = *bucket;
    row->next = endpoint->rows;
    return *bucket = endpoint->rows = row;
}

/* --------------------------------------------------------------------------------------------------------- operations */

static int profile_open(struct ofp_hook_endpoint *hook, char *text, size_t text_size)
{
    struct endpoint *endpoint = hook->private;

    (void)text;
    (void)text_size;
    endpoint->table = core->option_int(hook, "table") != 0;
    return 0;
}

static int profile_post(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                        struct ofp_hook_verdict *verdict)
{
    struct operation *seen = operation->private;

    (void)hook;
    (void)verdict;
    seen->begin = core->core->now();
    return 0;
}

static void profile_completed(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                              const struct ofp_completion *completion, bool more)
{
    const struct operation *seen = operation->private;
    bool receive = ofp_operation_is(operation->code, OFP_RECEIVES);
    bool taken = receive && completion->flags & OFP_COMPLETED_RECV && !completion->error;
    struct profile_row *row;

    (void)more;
    /* The release of a multi-receive buffer without a message. */
    if (receive && !taken && !completion->error && completion->flags & OFP_COMPLETED_MULTI_RECV)
        return;
    row = get_row(hook, operation->code, taken ? completion->source : operation->index, operation->peer);
    if (!row)
        return;
    row->counts.operations++;
    if (completion->error) {
        row->counts.errors++;
        return;
    }
    row->counts.bytes += receive ? completion->length : operation->length;
    row->counts.sizes[compute_place(receive ? completion->length : operation->length)]++;
    row->counts.latencies[compute_place(core->core->now() - seen->begin)]++;
}

static void profile_close(struct ofp_hook_endpoint *hook)
{
    struct endpoint *endpoint = hook->private;

    if (endpoint->table && endpoint->rows)
        profile_total_add(endpoint->rows);
    while (endpoint->rows) {
        struct profile_row *row = endpoint->rows;

        endpoint->rows = row->next;
        free(row);
    }
}

/* ------------------------------------------------------------------------------------------------------------- report */

struct text {
    char *at;
    size_t room;
    int64_t length; /* of the whole text, even if it does not fit */
};

static void append_text(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append_text(struct text *text, const char *format, ...)
{
    size_t used = (size_t)text->length < text->room ? (size_t)text->length : text->room;
    va_list arguments;

    va_start(arguments, format);
    text->length += vsnprintf(text->room ? text->at + used : NULL, text->room - used, format, arguments);
    va_end(arguments);
}

static void append_places(struct text *text, const char *name, const uint64_t *places)
{
    const char *between = "";

    append_text(text, ",\"%s\":[", name);
    for (int i = 0; i < PROFILE_PLACES; i++) {
        if (!places[i])
            continue;
        append_text(text, "%s[%" PRIu64 ",%" PRIu64 "]", between, compute_least(i), places[i]);
        between = ",";
    }
    append_text(text, "]");
}

static void append_row(struct text *text, const struct profile_row *row)
{
    const struct profile_counts *counts = &row->counts;

    append_text(text, "{\"operation\":\"%s\",\"peer\":", ofp_operation_name(row->code));
    if (row->peer == OFP_PEER_ANY || row->peer == OFP_PEER_UNKNOWN)
        append_text(text, "null");
    else
        append_text(text, "%" PRIu32, row->peer);
    append_text(text, ",\"address\":\"%s\",\"operations\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"bytes\":%" PRIu64,
                row->address, counts->operations, counts->errors, counts->bytes);
    append_places(text, "sizes", counts->sizes);
    append_places(text, "latencies", counts->latencies);
    append_text(text, "}");
}

static int64_t profile_report(struct ofp_hook_endpoint *hook, char *json, size_t size)
{
    const struct endpoint *endpoint = hook->private;
    struct text text = {.at = json, .room = size};

    append_text(&text, "{\"schema\":1,\"rows\":[");
    for (const struct profile_row *row = endpoint->rows; row; row = row->next) {
        append_row(&text, row);
        if (row->next)
            append_text(&text, ",");
    }
    append_text(&text, "]}");
    return text.length;
}

static const struct ofp_hook profile = {
    .abi = OFP_HOOK_ABI,
    .size = sizeof(profile),
    .name = "profile",
    .description = "Counts operations, their bytes and times, by kind and peer; Endpoint.profile()",
    .options = options,
    .endpoint_size = sizeof(struct endpoint),
    .operation_size = sizeof(struct operation),
    .open = profile_open,
    .close = profile_close,
    .post = profile_post,
    .completed = profile_completed,
    .report = profile_report,
};

const struct ofp_hook *ofpi_hook_profile_get(const struct ofp_hook_core *services)
{
    core = services;
    core->core->hold_in_fork(&profile_totals_lock);
    return &profile;
}
